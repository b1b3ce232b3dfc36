"""Single shot detection in the manner of Dive into Deep Learning."""

import os
import time

import cv2
import mxnet as mx
import numpy as np
from mxnet import autograd, contrib, gluon, image, init, nd
from mxnet.gluon import loss as gloss, nn

EDGE, BATCH = 64, 8


def pack(path, n):
    rng = np.random.RandomState(0)
    record = mx.recordio.MXIndexedRecordIO(path + '.idx', path + '.rec', 'w')
    for i in range(n):
        img = rng.randint(0, 60, (EDGE, EDGE, 3)).astype(np.uint8)
        size = rng.randint(20, 32)
        x, y = rng.randint(0, EDGE - size, 2)
        cv2.rectangle(img, (int(x), int(y)), (int(x + size), int(y + size)), (20, 230, 240), -1)
        box = np.array([x, y, x + size, y + size], dtype=np.float) / EDGE
        header = mx.recordio.IRHeader(0, np.concatenate([[4, 5, EDGE, EDGE, 0], box]), i, 0)
        record.write_idx(i, mx.recordio.pack_img(header, img, quality=95))
    record.close()


def cls_predictor(num_anchors, num_classes):
    return nn.Conv2D(num_anchors * (num_classes + 1), kernel_size=3, padding=1)


def bbox_predictor(num_anchors):
    return nn.Conv2D(num_anchors * 4, kernel_size=3, padding=1)


def flatten_pred(pred):
    return pred.transpose((0, 2, 3, 1)).flatten()


def concat_preds(preds):
    return nd.concat(*[flatten_pred(p) for p in preds], dim=1)


def down_sample_blk(num_channels):
    blk = nn.Sequential()
    blk.add(
        nn.Conv2D(num_channels, kernel_size=3, padding=1),
        nn.BatchNorm(in_channels=num_channels),
        nn.Activation('relu'),
        nn.MaxPool2D(2),
    )
    return blk


sizes = [[0.3, 0.4], [0.5, 0.6]]
ratios = [[1, 2, 0.5]] * 2
num_anchors = len(sizes[0]) + len(ratios[0]) - 1


class TinySSD(nn.Block):
    def __init__(self, num_classes, **kwargs):
        super(TinySSD, self).__init__(**kwargs)
        self.num_classes = num_classes
        base = nn.Sequential()
        base.add(*[down_sample_blk(c) for c in [8, 16, 16]])
        for i, blk in enumerate([base, down_sample_blk(16)]):
            setattr(self, 'blk_%d' % i, blk)
            setattr(self, 'cls_%d' % i, cls_predictor(num_anchors, num_classes))
            setattr(self, 'bbox_%d' % i, bbox_predictor(num_anchors))

    def forward(self, X):
        anchors, cls_preds, bbox_preds = [None] * 2, [None] * 2, [None] * 2
        for i in range(2):
            X = getattr(self, 'blk_%d' % i)(X)
            anchors[i] = contrib.ndarray.MultiBoxPrior(X, sizes=sizes[i], ratios=ratios[i])
            cls_preds[i], bbox_preds[i] = (
                getattr(self, 'cls_%d' % i)(X),
                getattr(self, 'bbox_%d' % i)(X),
            )
        return (
            nd.concat(*anchors, dim=1),
            concat_preds(cls_preds).reshape((0, -1, self.num_classes + 1)),
            concat_preds(bbox_preds),
        )


if __name__ == '__main__':
    mx.random.seed(0)
    np.random.seed(0)
    pack('train', 64)
    train_iter = image.ImageDetIter(
        path_imgrec='train.rec',
        path_imgidx='train.idx',
        batch_size=BATCH,
        data_shape=(3, EDGE, EDGE),
        shuffle=True,
        rand_mirror=True,
    )
    batch = train_iter.next()
    assert batch.data[0].shape == (BATCH, 3, EDGE, EDGE) and batch.label[0].shape == (BATCH, 1, 5)
    net = TinySSD(num_classes=1)
    net.initialize(init=init.Xavier(), ctx=mx.cpu())
    trainer = gluon.Trainer(net.collect_params(), 'sgd', {'learning_rate': 0.2, 'wd': 5e-4})
    cls_loss, bbox_loss = gloss.SoftmaxCrossEntropyLoss(), gloss.L1Loss()
    for epoch in range(12):
        acc_sum, n, mae_sum, m = 0.0, 0, 0.0, 0
        train_iter.reset()
        for batch in train_iter:
            X, Y = (
                batch.data[0].as_in_context(mx.cpu()) / 255,
                batch.label[0].as_in_context(mx.cpu()),
            )
            with autograd.record():
                anchors, cls_preds, bbox_preds = net(X)
                bbox_labels, bbox_masks, cls_labels = contrib.nd.MultiBoxTarget(
                    anchors, Y, cls_preds.transpose((0, 2, 1))
                )
                l = cls_loss(cls_preds, cls_labels) + bbox_loss(
                    bbox_preds * bbox_masks, bbox_labels * bbox_masks
                )
            l.backward()
            trainer.step(BATCH)
            acc_sum += (cls_preds.argmax(axis=-1) == cls_labels).sum().asscalar()
            n += cls_labels.size
            mae_sum += ((bbox_labels - bbox_preds) * bbox_masks).abs().sum().asscalar()
            m += bbox_labels.size
    print('epoch %2d, class err %.2e, bbox mae %.2e' % (epoch + 1, 1 - acc_sum / n, mae_sum / m))
    anchors, cls_preds, bbox_preds = net(X)
    out = contrib.nd.MultiBoxDetection(
        cls_preds.softmax().transpose((0, 2, 1)), bbox_preds, anchors
    )
    hits = []
    for row, label in zip(out, Y):
        best = row[int(row[:, 1].argmax(axis=0).asscalar())].asnumpy()
        left, top = np.maximum(best[2:4], label[0, 1:3].asnumpy())
        right, bottom = np.minimum(best[4:6], label[0, 3:5].asnumpy())
        inner = max(right - left, 0) * max(bottom - top, 0)
        area = [(b[2] - b[0]) * (b[3] - b[1]) for b in (best[2:6], label[0, 1:5].asnumpy())]
        hits.append(inner / (sum(area) - inner))
    print('overlap %.3f' % np.median(hits))

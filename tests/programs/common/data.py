"""The data of the programs."""
import mxnet as mx
import numpy as np


def add_data_args(parser):
    group = parser.add_argument_group('Data', 'the input images')
    group.add_argument('--data-train', type=str, help='the training data')
    group.add_argument('--batch-size', type=int, default=60)


def digits(path):
    record = mx.recordio.MXRecordIO(path, 'r')
    images, found = [], []
    while True:
        item = record.read()
        if not item:
            break
        header, s = mx.recordio.unpack(item)
        images.append(np.frombuffer(s, dtype=np.uint8).reshape((1, 8, 8)))
        found.append(header.label)
    return np.array(images).astype(np.float) / 16, np.array(found, dtype=np.float32)


def get_iter(args, kv):
    images, found = digits(args.data_train)
    order = np.random.RandomState(0).permutation(len(found))
    images, found = images[order], found[order]
    n = np.int(np.product(found.shape) * .8)
    train = mx.io.NDArrayIter(images[:n], found[:n], args.batch_size, shuffle=True)
    val = mx.io.NDArrayIter(images[n:], found[n:], args.batch_size)
    return train, val


def labels(val):
    val.reset()
    return np.concatenate([b.label[0].asnumpy()[:len(b.label[0]) - b.pad] for b in val])

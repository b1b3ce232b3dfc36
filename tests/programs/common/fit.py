"""What the programs train by."""
import logging

import mxnet as mx


def add_fit_args(parser):
    train = parser.add_argument_group('Training', 'model training')
    train.add_argument('--num-epochs', type=int, default=10)
    train.add_argument('--lr', type=float, default=0.1)
    train.add_argument('--lr-step-epochs', type=str, default='4,6')
    train.add_argument('--kv-store', type=str, default='device')
    train.add_argument('--model-prefix', type=str, default='mnist')


def fit(args, network, data_loader):
    kv = mx.kvstore.create(args.kv_store)
    head = '%(asctime)-15s Node[' + str(kv.rank) + '] %(message)s'
    logging.info('start with arguments %s (%s)', args, head)
    train, val = data_loader(args, kv)
    steps = [1000 * int(x) for x in args.lr_step_epochs.split(',')]
    model = mx.mod.Module(context=mx.cpu(), symbol=network)
    model.fit(train,
              eval_data=val,
              eval_metric=['accuracy', mx.metric.create('ce')],
              kvstore=kv,
              optimizer='sgd',
              optimizer_params={'learning_rate': args.lr, 'momentum': 0.9, 'wd': 1e-4,
                                'lr_scheduler': mx.lr_scheduler.MultiFactorScheduler(
                                    step=steps, factor=.1)},
              initializer=mx.init.Xavier(rnd_type='gaussian', factor_type="in", magnitude=2),
              num_epoch=args.num_epochs,
              batch_end_callback=mx.callback.Speedometer(args.batch_size, 10),
              epoch_end_callback=mx.callback.do_checkpoint(args.model_prefix, period=4),
              allow_missing=True)
    return model

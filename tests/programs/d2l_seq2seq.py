"""An encoder-decoder with attention, in the manner of Dive into Deep Learning."""

import collections
import math
import random
import time

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, init, nd
from mxnet.contrib import text
from mxnet.gluon import data as gdata, loss as gloss, nn, rnn

PAD, BOS, EOS = '<pad>', '<bos>', '<eos>'
ctx = mx.cpu() if mx.context.num_gpus() == 0 else mx.gpu()


def make_pairs(n):
    rng = np.random.RandomState(0)
    words = 'a b c d e f'.split()
    pairs = []
    for _ in range(n):
        src = [words[i] for i in rng.randint(0, len(words), size=rng.randint(2, 5))]
        pairs.append((src, [w.upper() for w in reversed(src)]))
    return pairs


def process_one_seq(seq_tokens, all_tokens, all_seqs, max_seq_len):
    all_tokens.extend(seq_tokens)
    seq_tokens = seq_tokens + [EOS] + [PAD] * (max_seq_len - len(seq_tokens) - 1)
    all_seqs.append(seq_tokens)


def build_data(all_tokens, all_seqs):
    vocab = text.vocab.Vocabulary(collections.Counter(all_tokens), reserved_tokens=[PAD, BOS, EOS])
    indices = [vocab.to_indices(seq) for seq in all_seqs]
    return vocab, nd.array(indices)


def read_data(max_seq_len, n):
    in_tokens, out_tokens, in_seqs, out_seqs = [], [], [], []
    for src, dst in make_pairs(n):
        process_one_seq(src, in_tokens, in_seqs, max_seq_len)
        process_one_seq(dst, out_tokens, out_seqs, max_seq_len)
    in_vocab, in_data = build_data(in_tokens, in_seqs)
    out_vocab, out_data = build_data(out_tokens, out_seqs)
    return in_vocab, out_vocab, gdata.ArrayDataset(in_data, out_data)


class Encoder(nn.Block):
    def __init__(self, vocab_size, embed_size, num_hiddens, num_layers, drop_prob=0, **kwargs):
        super(Encoder, self).__init__(**kwargs)
        self.embedding = nn.Embedding(vocab_size, embed_size)
        self.rnn = rnn.GRU(num_hiddens, num_layers, dropout=drop_prob)

    def forward(self, inputs, state):
        embedding = self.embedding(inputs).swapaxes(0, 1)
        return self.rnn(embedding, state)

    def begin_state(self, *args, **kwargs):
        return self.rnn.begin_state(*args, **kwargs)


def attention_model(attention_size):
    model = nn.Sequential()
    model.add(
        nn.Dense(attention_size, activation='tanh', use_bias=False, flatten=False),
        nn.Dense(1, use_bias=False, flatten=False),
    )
    return model


def attention_forward(model, enc_states, dec_state):
    dec_states = nd.broadcast_axis(dec_state.expand_dims(0), axis=0, size=enc_states.shape[0])
    enc_and_dec_states = nd.concat(enc_states, dec_states, dim=2)
    e = model(enc_and_dec_states)
    alpha = nd.softmax(e, axis=0)
    return (alpha * enc_states).sum(axis=0)


class Decoder(nn.Block):
    def __init__(self, vocab_size, embed_size, num_hiddens, num_layers, attention_size, **kwargs):
        super(Decoder, self).__init__(**kwargs)
        self.embedding = nn.Embedding(vocab_size, embed_size)
        self.attention = attention_model(attention_size)
        self.rnn = rnn.GRU(num_hiddens, num_layers)
        self.out = nn.Dense(vocab_size, flatten=False)

    def forward(self, cur_input, state):
        c = attention_forward(self.attention, state[1], state[0][0][-1])
        input_and_c = nd.concat(self.embedding(cur_input), c, dim=1)
        output, hidden = self.rnn(input_and_c.expand_dims(0), state[0])
        output = self.out(output).squeeze(axis=0)
        return output, [hidden, state[1]]

    def begin_state(self, enc_outputs, enc_state):
        return [enc_state, enc_outputs]


def batch_loss(encoder, decoder, X, Y, loss, out_vocab):
    batch_size = X.shape[0]
    enc_state = encoder.begin_state(batch_size=batch_size)
    enc_outputs, enc_state = encoder(X, enc_state)
    dec_state = decoder.begin_state(enc_outputs, enc_state)
    dec_input = nd.array([out_vocab.token_to_idx[BOS]] * batch_size)
    mask, num_not_pad_tokens = nd.ones(shape=(batch_size,)), 0
    l = nd.array([0])
    for y in Y.T:
        dec_output, dec_state = decoder(dec_input, dec_state)
        l = l + (mask * loss(dec_output, y)).sum()
        dec_input = y
        num_not_pad_tokens += mask.sum().asscalar()
        mask = mask * (y != out_vocab.token_to_idx[EOS])
    return l / num_not_pad_tokens


def train(encoder, decoder, dataset, lr, batch_size, num_epochs, out_vocab):
    encoder.initialize(init.Xavier(), force_reinit=True, ctx=ctx)
    decoder.initialize(init.Xavier(), force_reinit=True, ctx=ctx)
    enc_trainer = gluon.Trainer(encoder.collect_params(), 'adam', {'learning_rate': lr})
    dec_trainer = gluon.Trainer(decoder.collect_params(), 'adam', {'learning_rate': lr})
    loss = gloss.SoftmaxCrossEntropyLoss()
    data_iter = gdata.DataLoader(dataset, batch_size, shuffle=True)
    for epoch in range(num_epochs):
        l_sum, start = 0.0, time.time()
        for X, Y in data_iter:
            with autograd.record():
                l = batch_loss(encoder, decoder, X, Y, loss, out_vocab)
            l.backward()
            enc_trainer.step(1)
            dec_trainer.step(1)
            l_sum += l.asscalar()
        if (epoch + 1) % 5 == 0:
            print(
                'epoch %d, loss %.3f, time %.1f'
                % (epoch + 1, l_sum / len(data_iter), time.time() - start)
            )


def translate(encoder, decoder, in_vocab, out_vocab, input_seq, max_seq_len):
    in_tokens = input_seq.split(' ')
    in_tokens += [EOS] + [PAD] * (max_seq_len - len(in_tokens) - 1)
    enc_input = nd.array([in_vocab.to_indices(in_tokens)])
    enc_state = encoder.begin_state(batch_size=1)
    enc_output, enc_state = encoder(enc_input, enc_state)
    dec_input = nd.array([out_vocab.token_to_idx[BOS]])
    dec_state = decoder.begin_state(enc_output, enc_state)
    output_tokens = []
    for _ in range(max_seq_len):
        dec_output, dec_state = decoder(dec_input, dec_state)
        pred = dec_output.argmax(axis=1)
        pred_token = out_vocab.idx_to_token[int(pred.asscalar())]
        if pred_token == EOS:
            break
        output_tokens.append(pred_token)
        dec_input = pred
    return output_tokens


def bleu(pred_tokens, label_tokens, k):
    len_pred, len_label = len(pred_tokens), len(label_tokens)
    score = math.exp(min(0, 1 - len_label / max(len_pred, 1)))
    for n in range(1, k + 1):
        num_matches, label_subs = 0, collections.defaultdict(int)
        for i in range(len_label - n + 1):
            label_subs[''.join(label_tokens[i : i + n])] += 1
        for i in range(len_pred - n + 1):
            if label_subs[''.join(pred_tokens[i : i + n])] > 0:
                num_matches += 1
                label_subs[''.join(pred_tokens[i : i + n])] -= 1
        score *= math.pow(num_matches / max(len_pred - n + 1, 1), math.pow(0.5, n))
    return score


if __name__ == '__main__':
    mx.random.seed(1)
    np.random.seed(1)
    random.seed(1)
    max_seq_len = 6
    in_vocab, out_vocab, dataset = read_data(max_seq_len, 128)
    encoder = Encoder(len(in_vocab), 16, 32, 1)
    decoder = Decoder(len(out_vocab), 16, 32, 1, 10)
    train(encoder, decoder, dataset, 0.02, 16, 15, out_vocab)
    scores = []
    for src, dst in make_pairs(20):
        scores.append(
            bleu(
                translate(encoder, decoder, in_vocab, out_vocab, ' '.join(src), max_seq_len), dst, 2
            )
        )
    print('bleu %.3f' % np.mean(scores))

import numpy as np, pickle, sys, copyreg, collections
out = sys.argv[1]
w = (np.arange(6, dtype='float32') / 4).reshape(2, 3)
b = np.array([0.5, -1.0, 2.0], dtype='float32')
class T:  # reduced as paddle.save reduces a tensor
    def __init__(self, name, a): self.name, self.a = name, a
    def __reduce__(self): return (tuple, ((self.name, self.a),))
class L:  # and one of a static program
    def __init__(self, a): self.a = a
    def __reduce__(self): return (eval, ('data', {'data': self.a}))
for p in (2, 3, 4, 5):
    dy = {'fc.weight': T('linear_0.w_0', w), 'fc.bias': T('linear_0.b_0', b)}
    pickle.dump(dy, open(f'{out}/tensors{p}.pdparams', 'wb'), protocol=p)
    st = collections.OrderedDict([('fc_0.w_0', w), ('fc_0.b_0', b), ('count', np.array([7], dtype='int64')), ('half', np.array([0.5, -2, 65504], dtype='float16')), ('wide', np.array([[1.5]], dtype='float64')), ('empty', np.zeros((0, 3), dtype='float32')), ('step', 12), ('rate', 0.25),
      ('StructuredToParameterName@@', {'fc_0.w_0': 'linear_0.w_0'})])
    pickle.dump(st, open(f'{out}/arrays{p}.pdparams', 'wb'), protocol=p)
pickle.dump({'w': L(w)}, open(f'{out}/static.pdparams', 'wb'), protocol=2)
opt = {'linear_0.w_0_moment1_0': T('m', w), 'linear_0.w_0_moment2_0': T('v', w * w), 'linear_0.w_0_beta2_pow_acc_0': T('p', np.array([0.999 ** 21], dtype='float32')), 'linear_0.w_0_beta1_pow_acc_0': T('p1', np.array([0.9 ** 21], dtype='float32')),
       'LR_Scheduler': {'last_epoch': 3, 'last_lr': 0.1}}
pickle.dump(opt, open(f'{out}/adam.pdopt', 'wb'), protocol=4)
class E:
    def __reduce__(self): return (__import__('os').system, ('true',))
pickle.dump({'w': E()}, open(f'{out}/system.pickle', 'wb'), protocol=2)
class F:
    def __reduce__(self): return (eval, ('1+1',))
pickle.dump({'w': F()}, open(f'{out}/eval.pickle', 'wb'), protocol=4)
pickle.dump({'w': np.asfortranarray(w)}, open(f'{out}/columns.pickle', 'wb'), protocol=4)
pickle.dump({'w': w.astype('>f4')}, open(f'{out}/big_endian.pickle', 'wb'), protocol=4)

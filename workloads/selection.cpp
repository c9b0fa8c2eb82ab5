// The twins in C++ of `by_mask` and `by_index` in selection.py: x is float [n] or [n, columns], mask bool [n].
#include <ATen/ATen.h>
#include <torch/library.h>

namespace {

at::Tensor by_mask(const at::Tensor& x, const at::Tensor& mask, int64_t uses) {
  at::Tensor selected;
  for (int64_t use = 0; use < uses; ++use) {
    selected.reset();
    selected = x.index({mask});
  }
  return selected;
}

at::Tensor by_index(const at::Tensor& x, const at::Tensor& mask, int64_t uses) {
  const at::Tensor index = mask.nonzero().squeeze(1);
  at::Tensor selected;
  for (int64_t use = 0; use < uses; ++use) {
    selected.reset();
    selected = x.index({index});
  }
  return selected;
}

}  // namespace

TORCH_LIBRARY(torch_history_selection, m) {
  m.def("mask", by_mask);
  m.def("index_reused", by_index);
}

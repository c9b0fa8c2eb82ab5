// The network of warm_up.py in C++: picture is float [1, 3, side, side], parameters as in `Calls`; the result is float [1, classes].
#include <ATen/ATen.h>
#include <torch/library.h>

namespace {

at::Tensor layer(const at::Tensor& x, at::TensorList parameters, int64_t stride) {
  const at::Tensor y = at::conv2d(x, parameters[0], {}, stride, 1);
  return at::batch_norm(y, parameters[1], parameters[2], parameters[3], parameters[4], false, 0.1, 1e-5, true);
}

at::Tensor network(const at::Tensor& picture, at::TensorList parameters) {
  at::Tensor x = at::relu(layer(picture, parameters.slice(0, 5), 2));
  x = at::relu(layer(x, parameters.slice(5, 5), 2));
  x = at::relu(layer(x, parameters.slice(10, 5), 1) + x);
  return at::linear(x.mean({2, 3}), parameters[15], parameters[16]);
}

}  // namespace

TORCH_LIBRARY(torch_history_warm_up, m) {
  m.def("network", network);
}

// The twins in C++ of vstack_rows and flat_buffer in batching.py. `addresses`, int64 [B], says where each row of `columns`
// float32 lies in the user's memory, which must outlive the call; the result is float32 [B, columns] on the CPU.
#include <torch/library.h>
#if __has_include(<ATen/ops/vstack.h>)  // newer wheels; 2 s less to compile than all of ATen.h
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/vstack.h>
#else
#include <ATen/ATen.h>
#endif

#include <cstring>
#include <vector>

namespace {

at::Tensor vstack_rows(const at::Tensor& addresses, int64_t columns) {
  const int64_t* address = addresses.data_ptr<int64_t>();
  std::vector<at::Tensor> rows;
  rows.reserve(addresses.numel());
  for (int64_t row = 0; row < addresses.numel(); ++row) {
    rows.push_back(at::from_blob(reinterpret_cast<void*>(address[row]), {columns}, at::kFloat));
  }
  return at::vstack(rows);
}

at::Tensor flat_buffer(const at::Tensor& addresses, int64_t columns) {
  const int64_t* address = addresses.data_ptr<int64_t>();
  at::Tensor batch = at::empty({addresses.numel(), columns}, at::kFloat);
  float* to = batch.data_ptr<float>();
  for (int64_t row = 0; row < addresses.numel(); ++row, to += columns) {
    std::memcpy(to, reinterpret_cast<const void*>(address[row]), columns * sizeof(float));
  }
  return batch;
}

}  // namespace

TORCH_LIBRARY(torch_history_batching, m) {
  m.def("vstack_rows", vstack_rows);
  m.def("flat_buffer", flat_buffer);
}

// jit in C++: a function of tensors whose calls are followed, and repeated from a trace once two of
// them did the same. What is repeated goes through the thread's window as the function's own
// operations do, so the results have the same bits; what is saved is the function's time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lamella/ir/trace.h"

namespace lamella::nn {

// Called from one thread at a time.
//
// The function may read and write tensors and cells of outside, draw random numbers and step
// optimizers: these happen anew at each call. It must do the same operations whenever its arguments
// have the same dtypes and shapes and no cell has changed its parts or mode: other variables of the
// program are not watched, beyond what two calls in a row show. A function that reads a value
// (`item`, `data`), keeps a tensor it made or was given in a variable of outside (`assign` to a
// tensor of outside is fine) or does something different the second time runs as if it was not
// wrapped, and says so once.
class LAMELLA_API Jit {
 public:
  using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>& arguments)>;

  explicit Jit(Function function);

  std::vector<Tensor> operator()(const std::vector<Tensor>& arguments);

  // Why the calls that were followed last could not be kept; empty if they could.
  const std::string& reason() const { return reason_; }

 private:
  struct Variant;

  std::vector<Tensor> follow(const std::vector<Tensor>& arguments,
                             std::shared_ptr<Variant> variant);
  void keep(std::shared_ptr<Variant> variant);
  // A call could not be kept; after a few the function is left alone.
  void give_up(std::string why, const SourceLocation& line);
  void stay_as_it_is(std::string why, const SourceLocation& line);

  Function function_;
  std::vector<std::shared_ptr<Variant>> variants_;  // the one used last in front
  int failures_ = 0;
  int followed_ = 0;  // calls since one was repeated or found to do the same as another
  std::string reason_;
};

}  // namespace lamella::nn

// What running code says about itself to someone who listens on its thread: how a product is cut
// into tiles, which implementation a library chose. Without a listener a remark costs a look at a
// variable of the thread.
#pragma once

#include <string>
#include <vector>

#include "lamella/base/api.h"
#include "lamella/base/function_ref.h"

namespace lamella {

// Collects this thread's remarks while it lives; what came before hears nothing meanwhile.
class LAMELLA_API RemarkListener {
 public:
  RemarkListener();
  ~RemarkListener();
  RemarkListener(const RemarkListener&) = delete;

  const std::vector<std::string>& remarks() const { return remarks_; }

 private:
  friend LAMELLA_API void remark(FunctionRef<std::string()> text);

  std::vector<std::string> remarks_;
  RemarkListener* outer_;
};

// Nobody hears this thread's remarks while it lives.
class LAMELLA_API RemarkPause {
 public:
  RemarkPause();
  ~RemarkPause();
  RemarkPause(const RemarkPause&) = delete;

 private:
  RemarkListener* outer_;
};

// Calls `text` only if someone listens.
LAMELLA_API void remark(FunctionRef<std::string()> text);

}  // namespace lamella

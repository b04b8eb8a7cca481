// Wraps callbacks that may run after the object that they call is gone.
#pragma once

#include <functional>
#include <memory>
#include <utility>

namespace penstock::base {

/// A member of an object that is destroyed on the thread on which its callbacks run.
class Lifetime {
 public:
  /// Returns a function that does nothing once this is destroyed or End was called. It may be
  /// destroyed on any thread.
  template <typename Function>
  auto Guard(Function function) const {
    return [token = std::weak_ptr<const int>(token_),
            function = std::move(function)](auto&&... arguments) {
      if (!token.expired()) function(std::forward<decltype(arguments)>(arguments)...);
    };
  }
  void End() { token_.reset(); }

 private:
  std::shared_ptr<const int> token_ = std::make_shared<const int>();
};

/// Returns a function that calls a method of a shared object as long as the object exists. The
/// object is kept during the call.
template <typename Object, typename Method>
auto IfAlive(Object* object, Method method) {
  return [weak = object->weak_from_this(), method](auto&&... arguments) {
    if (const auto alive = weak.lock())
      std::invoke(method, *alive, std::forward<decltype(arguments)>(arguments)...);
  };
}

}  // namespace penstock::base

// Writes aggregated Events about an object, which `kubectl describe` and `kubectl get events` show.
#pragma once

#include <memory>
#include <string>

#include "protocol/kube/api.h"

namespace penstock::protocol::kube {

/// The object that an event is about.
struct ObjectReference {
  std::string api_version, kind, namespace_name, name, uid;
};

/// Use on the api's executor. Writes each (about, reason, message) once and counts repeats in the
/// same Event (core/v1: count, lastTimestamp). More than ten similar ones (about, reason) in ten
/// minutes become one Event that says so. After a burst of 25, writes at most once in two seconds.
/// Tries no write for longer than a minute: events are for people.
class EventRecorder {
 public:
  EventRecorder(Api& api, std::string component, std::string host,
                std::string namespace_name = "default");
  ~EventRecorder();

  void Normal(const ObjectReference& about, const std::string& reason, const std::string& message);
  void Warning(const ObjectReference& about, const std::string& reason, const std::string& message);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::protocol::kube

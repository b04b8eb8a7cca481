// Events about an object, aggregated: what `kubectl describe` and `kubectl get events` show.
#pragma once

#include <memory>
#include <string>

#include "edge/kube/api.h"

namespace penstock::edge::kube {

/// What an event is about.
struct ObjectReference {
  std::string api_version, kind, namespace_name, name, uid;
};

/// On the api's executor. Says each (about, reason, message) once and counts repeats in the same Event (core/v1: count, lastTimestamp);
/// more than ten similar ones (about, reason) in ten minutes become one that says so; at most one write in two seconds after a burst of 25.
/// Nothing is tried for longer than a minute: events are for people.
class EventRecorder {
 public:
  EventRecorder(Api& api, std::string component, std::string host, std::string namespace_name = "default");
  ~EventRecorder();

  void Normal(const ObjectReference& about, const std::string& reason, const std::string& message);
  void Warning(const ObjectReference& about, const std::string& reason, const std::string& message);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::edge::kube

// Writes aggregated Events about an object, which `kubectl describe` and `kubectl get events` show.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "protocol/kube/api.h"

namespace penstock::protocol::kube {

/// The object that an event is about.
struct ObjectReference {
  std::string api_version, kind, namespace_name, name, uid;
};

/// Of writes: so many at once, and then one in each `spacing`.
struct EventLimits {
  int burst = 50;
  base::Duration spacing = std::chrono::seconds(1);
};

/// Use on the api's executor. Writes each (about, reason, message) once and counts repeats in the
/// same Event (core/v1: count, lastTimestamp). More than ten similar ones (about, reason) in ten
/// minutes become one Event that says so. Warnings go first, and objects take turns: after a burst
/// of 25 about one object there is at most one in two seconds about it, and the others have the
/// rest of what `limits` allow for all objects together. A normal one that has not had its turn
/// within a minute is not written, nor a warning after ten, nor a new one while 1,024 are kept, or
/// of warnings 2,048. Tries no write for longer than a minute: events are for people.
class EventRecorder {
 public:
  EventRecorder(Api& api, std::string component, std::string host,
                std::string namespace_name = "default", EventLimits limits = {});
  ~EventRecorder();

  void Normal(const ObjectReference& about, const std::string& reason, const std::string& message);
  void Warning(const ObjectReference& about, const std::string& reason, const std::string& message);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::protocol::kube

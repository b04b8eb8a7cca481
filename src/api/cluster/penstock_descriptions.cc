// Texts only.
#include "api/cluster/penstock_descriptions.h"

namespace penstock::api {

const std::map<std::string, std::string_view, std::less<>>& PenstockDescriptions() {
  static const std::map<std::string, std::string_view, std::less<>> descriptions = {
      {"agent", "The agents' pods, one on each node with accelerators."},
      {"agent.image", "Image of the agents; if not set, the operator's own."},
      {"agent.imagePullPolicy", "If not set, IfNotPresent."},
      {"agent.imagePullSecrets", "Names of Secrets in the operator's namespace."},
      {"agent.labels", "Labels of the pods, added to the agent's own."},
      {"agent.annotations", "Annotations of the pods, added to the agent's own."},
      {"agent.nodeSelector", "Labels of the nodes that have an agent."},
      {"agent.tolerations", "Taints that the pods tolerate."},
      {"agent.affinity", "As in a pod."},
      {"agent.resources", "Requests and limits of the container."},
      {"agent.podSecurityContext", "As securityContext in a pod."},
      {"agent.volumes", "Volumes of the pods, added to the agent's own."},
      {"agent.volumeMounts", "Mounts of the container, added to the agent's own."},
      {"agent.env", "Environment variables of the container."},
      {"agent.env[].name", "Name of the variable."},
      {"agent.env[].value", "Its value."},
      {"agent.priorityClassName", "Priority of the pods."},
      {"agent.hostNetwork", "Whether the pods use the networks of their nodes."},
      {"agent.updateStrategy", "How a changed agent replaces the one before it."},
      {"agent.updateStrategy.type", "OnDelete: only where its pod is deleted."},
      {"agent.updateStrategy.maxUnavailable",
       "Nodes without an agent at the same time; if not set, the new pod starts beside the old one "
       "and takes over."},
      {"hostPaths", "Where the nodes have what the agents mount."},
      {"hostPaths.driverRoot",
       "Where a driver container puts its root. A node on which there is none uses the host's own "
       "driver."},
      {"hostPaths.kubeletDir", "The kubelet's folder, its --root-dir, with pod-resources."},
      {"hostPaths.devicePluginsDir",
       "The kubelet's folder of device plugins, which is the same under every --root-dir."},
      {"hostPaths.installDir",
       "Folder for the programs that container engines execute; if not set, the agent's state "
       "folder."},
      {"hostPaths.healthSockets",
       "Whether the folder /var/lib/amd-metrics-exporter is mounted, in which the agents serve the "
       "health of GPUs to AMD's own device plugin, in place of AMD's exporter."},
      {"node",
       "Each node's configuration: a NodeConfig without apiVersion and kind "
       "(docs/reference/config.md)."},
      {"configMaps", "Names of ConfigMaps in the operator's namespace."},
      {"configMaps.configurations",
       "A configuration for each kind of node, selected by its label "
       "nvidia.com/device-plugin.config."},
      {"configMaps.defaultConfiguration", "The key of nodes without that label."},
      {"configMaps.layouts", "A file of mig-parted under config.yaml."},
      {"configMaps.counters", "A file of counters under dcgm-metrics.csv."},
      {"configMaps.exporter",
       "The configuration of AMD's exporter under config.json (node.telemetry.exporterFile)."},
      {"configMaps.modeProfiles",
       "Profiles of AMD's Device Config Manager under config.json (node.parts.modeProfiles)."},
      {"configMaps.clientServices",
       "Services of the host that are stopped while a device that they hold is divided, under "
       "clients.yaml (node.parts.clientServices)."},
      {"runtimeClasses", "RuntimeClasses that pods select."},
      {"runtimeClasses[].name", "Name of the RuntimeClass."},
      {"runtimeClasses[].handler", "Name of the container engine's handler."},
      {"services", "Services that select the agents' metrics page."},
      {"services[].name", "Name of the Service."},
      {"services[].port", "Port of the Service."},
      {"services[].type", "Type of the Service."},
      {"services[].nodePort",
       "Port of the nodes, of the type NodePort; if not set, the server chooses one."},
      {"services[].internalTrafficPolicy",
       "Local: a client in the cluster reaches the agent of its own node."},
      {"services[].externalTrafficPolicy",
       "Local: a client outside the cluster reaches the agent of the node that it asks."},
      {"services[].labels", "Labels of the Service."},
      {"services[].annotations", "Annotations of the Service."},
      {"services[].serviceMonitor",
       "Whether there is a ServiceMonitor for it, where the cluster has this kind."},
      {"services[].interval", "How often Prometheus scrapes."},
      {"services[].scrapeTimeout", "How long Prometheus waits for the metrics."},
      {"services[].honorLabels", "Whether the metrics' own labels win over Prometheus'."},
      {"services[].monitorLabels", "Labels of the ServiceMonitor."},
      {"services[].relabelings", "Rules for the labels of targets, as in a ServiceMonitor."},
      {"services[].metricRelabelings", "Rules for the series of targets, as in a ServiceMonitor."},
      {"nodeLabels", "What the nodes get besides what their agents write."},
      {"nodeLabels.labels", "Labels, written where the node has none of the key."},
      {"nodeLabels.annotations", "Annotations."},
      {"nodeLabels.present", "Key of the label that says whether a node has accelerators."},
      {"nodeLabels.optOut",
       "Key of a label; where its value is false, the agent serves nothing on the node."},
      {"startupTaints",
       "Keys of taints with which nodes register to keep pods away until their accelerators can be "
       "used. The agents and the drivers tolerate them; they are removed once the condition "
       "penstock.io/AcceleratorsReady is true."},
      {"privilegedNamespace", "Whether the operator's namespace is labelled for privileged pods."},
  };
  return descriptions;
}

}  // namespace penstock::api

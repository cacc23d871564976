// Defines the parts of Kubernetes objects that the tests check.

export interface Labels {
  readonly [label: string]: string
}

export interface Metadata {
  readonly name: string
  readonly namespace?: string
  readonly labels?: Labels
  readonly annotations?: Labels
}

export interface Probe {
  readonly httpGet?: { readonly path: string; readonly port: string | number }
  readonly tcpSocket?: { readonly port: string | number }
}

export interface Container {
  readonly name: string
  readonly image: string
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[]
  readonly envFrom?: readonly { readonly configMapRef?: { readonly name: string } }[]
  readonly env?: readonly {
    readonly name: string
    readonly value?: string
    readonly valueFrom?: { readonly secretKeyRef?: { readonly name: string; readonly key: string } }
  }[]
  readonly startupProbe?: Probe
  readonly livenessProbe?: Probe
  readonly readinessProbe?: Probe
  readonly lifecycle?: { readonly preStop?: { readonly exec?: { readonly command: readonly string[] } } }
  readonly resources?: { readonly requests?: Labels; readonly limits?: Labels }
  readonly securityContext?: object
  readonly volumeMounts?: readonly { readonly name: string }[]
}

export interface PodSpec {
  readonly serviceAccountName?: string
  readonly automountServiceAccountToken?: boolean
  readonly enableServiceLinks?: boolean
  readonly terminationGracePeriodSeconds?: number
  readonly securityContext?: object
  readonly topologySpreadConstraints?: readonly { readonly labelSelector: Selector }[]
  readonly containers: readonly Container[]
  readonly volumes?: readonly { readonly name: string }[]
}

export interface Selector {
  readonly matchLabels?: Labels
  readonly matchExpressions?: readonly {
    readonly key: string
    readonly operator: string
    readonly values: readonly string[]
  }[]
}

interface Of<K extends string> {
  readonly apiVersion: string
  readonly kind: K
  readonly metadata: Metadata
}

export interface Deployment extends Of<'Deployment'> {
  readonly spec: {
    readonly replicas?: number
    readonly selector: Selector
    readonly template: { readonly metadata: Omit<Metadata, 'name'>; readonly spec: PodSpec }
  }
}

export interface Service extends Of<'Service'> {
  readonly spec: {
    readonly selector: Labels
    readonly ports: readonly { readonly name: string; readonly port: number; readonly targetPort: string | number }[]
  }
}

export interface ScalingPolicy {
  readonly type: 'Pods' | 'Percent'
  readonly value: number
  readonly periodSeconds: number
}

export interface ScalingRules {
  readonly stabilizationWindowSeconds?: number
  readonly selectPolicy?: 'Max' | 'Min' | 'Disabled'
  readonly policies?: readonly ScalingPolicy[]
}

export interface ScalingBehavior {
  readonly scaleUp?: ScalingRules
  readonly scaleDown?: ScalingRules
}

export interface ExternalMetric {
  readonly metric: { readonly name: string; readonly selector?: Selector }
  readonly target: { readonly type: string; readonly averageValue?: string }
}

export interface Autoscaler extends Of<'HorizontalPodAutoscaler'> {
  readonly spec: {
    readonly scaleTargetRef: { readonly apiVersion: string; readonly kind: string; readonly name: string }
    readonly minReplicas: number
    readonly maxReplicas: number
    readonly metrics: readonly {
      readonly type: string
      readonly resource?: { readonly name: string }
      readonly external?: ExternalMetric
    }[]
    readonly behavior?: ScalingBehavior
  }
}

/** Tells KEDA to create an autoscaler. */
export interface ScaledObject extends Of<'ScaledObject'> {
  readonly spec: {
    readonly scaleTargetRef: { readonly name: string }
    readonly minReplicaCount: number
    readonly maxReplicaCount: number
    readonly advanced: { readonly horizontalPodAutoscalerConfig: { readonly behavior: ScalingBehavior } }
    readonly triggers: readonly {
      readonly type: string
      readonly metricType: string
      readonly metadata: Readonly<Record<string, string>>
    }[]
  }
}

export interface DisruptionBudget extends Of<'PodDisruptionBudget'> {
  readonly spec: {
    readonly selector: Selector
    readonly maxUnavailable?: number
    readonly minAvailable?: number
    readonly unhealthyPodEvictionPolicy?: string
  }
}

export interface NetworkPolicy extends Of<'NetworkPolicy'> {
  readonly spec: {
    readonly podSelector: Selector
    readonly ingress: readonly { readonly ports?: readonly { readonly port: string | number }[] }[]
  }
}

export interface ConfigMap extends Of<'ConfigMap'> {
  readonly data: Readonly<Record<string, string>>
}

/** The values are encoded in base64. */
export interface Secret extends Of<'Secret'> {
  readonly data: Readonly<Record<string, string>>
}

/** Tells the Prometheus operator which pods Prometheus scrapes. */
export interface PodMonitor extends Of<'PodMonitor'> {
  readonly spec: {
    readonly selector: Selector
    readonly podMetricsEndpoints: readonly { readonly port: string; readonly path?: string }[]
  }
}

/** Tells the Prometheus operator which rules Prometheus evaluates. */
export interface PrometheusRule extends Of<'PrometheusRule'> {
  readonly spec: { readonly groups: readonly { readonly rules: readonly { readonly alert?: string }[] }[] }
}

export type Manifest =
  | Deployment
  | Service
  | Autoscaler
  | ScaledObject
  | DisruptionBudget
  | NetworkPolicy
  | ConfigMap
  | Secret
  | PodMonitor
  | PrometheusRule
  | Of<'ServiceAccount'>
  | Of<'Namespace'>

/** Every kind that is listed in {@link Manifest}. Objects of any other kind would not be checked. */
export const KINDS: readonly Manifest['kind'][] = [
  'Deployment',
  'Service',
  'HorizontalPodAutoscaler',
  'ScaledObject',
  'PodDisruptionBudget',
  'NetworkPolicy',
  'ConfigMap',
  'Secret',
  'PodMonitor',
  'PrometheusRule',
  'ServiceAccount',
  'Namespace',
]

export function ofKind<K extends Manifest['kind']>(
  manifests: readonly Manifest[],
  kind: K,
): readonly Extract<Manifest, { readonly kind: K }>[] {
  return manifests.filter((each): each is Extract<Manifest, { readonly kind: K }> => each.kind === kind)
}

export function selects(selector: Selector, labels: Labels): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector
  return (
    Object.keys(matchLabels).length + matchExpressions.length > 0 &&
    Object.entries(matchLabels).every(([label, value]) => labels[label] === value) &&
    matchExpressions.every(({ key, operator, values }) => operator === 'In' && values.includes(labels[key] ?? ''))
  )
}

/** Returns the number that a quantity stands for: `800m` is 0.8. */
export function quantity(text: string): number {
  return text.endsWith('m') ? Number(text.slice(0, -1)) / 1_000 : Number(text)
}

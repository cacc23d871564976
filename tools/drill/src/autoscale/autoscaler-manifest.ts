// Reads the autoscaler of a Deployment from the rendered manifests, together with what its pods and prometheus-adapter need.
import { readFileSync } from 'node:fs'
import { readSettings, WORKER_RULES, WORKER_SETTINGS, type WorkerConfig } from '@bullpen/config'
import { parse, parseAllDocuments } from 'yaml'
import { type Deployment, type Manifest, ofKind, quantity } from '../../../../k8s/manifest.ts'
import type { ScalingLimits } from './replica-autoscaler.ts'

export interface AutoscalerManifest extends ScalingLimits {
  readonly metrics: readonly ExternalTarget[]
  /** The settings of the pods' workers. */
  readonly worker: WorkerConfig
  /** After this time, Kubernetes kills a pod that is told to end. */
  readonly terminationGraceMs: number
}

export interface ExternalTarget {
  /** What prometheus-adapter asks Prometheus for the metric. The value is the sum of the results. */
  readonly expression: string
  /** What each pod should have of the metric. */
  readonly target: number
}

interface AdapterRule {
  readonly seriesQuery: string
  readonly name: { readonly matches: string; readonly as: string }
  readonly metricsQuery: string
}

const RENDERED = new URL('../../../../k8s/rendered/backlog.yaml', import.meta.url)
const RULES = new URL('../../../../k8s/alerts/bullpen.rules.yaml', import.meta.url)

/** The namespace of the pods, which Prometheus adds to their series. */
export const POD_NAMESPACE = 'bullpen'

export function readAutoscaler(name: string): AutoscalerManifest {
  const manifests = parseAllDocuments(readFileSync(RENDERED, 'utf8')).map((each) => each.toJS() as Manifest)
  const { spec } = only(ofKind(manifests, 'HorizontalPodAutoscaler'), name)
  const deployment = only(ofKind(manifests, 'Deployment'), spec.scaleTargetRef.name)
  const adapter = only(ofKind(manifests, 'ConfigMap'), 'bullpen-prometheus-adapter').data['config.yaml'] ?? ''
  const { externalRules } = parse(adapter) as { externalRules: readonly AdapterRule[] }
  return {
    minReplicas: spec.minReplicas,
    maxReplicas: spec.maxReplicas,
    behavior: spec.behavior ?? {},
    metrics: spec.metrics.map(({ external }) => {
      if (external === undefined) throw new Error(`the autoscaler ${name} has a metric that is not external`)
      const { metric, target } = external
      const labels = { namespace: POD_NAMESPACE, ...metric.selector?.matchLabels }
      return {
        expression: expressionFor(metric.name, labels, externalRules),
        target: quantity(target.averageValue ?? ''),
      }
    }),
    worker: workerConfig(deployment, manifests),
    terminationGraceMs: (deployment.spec.template.spec.terminationGracePeriodSeconds ?? 30) * 1_000,
  }
}

/** Returns the query that the adapter's rule for this metric makes. @throws Error if no rule serves the metric. */
function expressionFor(
  metric: string,
  labels: Readonly<Record<string, string>>,
  rules: readonly AdapterRule[],
): string {
  const matchers = Object.entries(labels).map(([label, value]) => `${label}="${value}"`)
  for (const { name, metricsQuery } of rules) {
    const series = recordedSeries().find((each) => each.replace(new RegExp(name.matches), name.as) === metric)
    if (series === undefined) continue
    return metricsQuery.replace('<<.Series>>', series).replace('<<.LabelMatchers>>', matchers.join(','))
  }
  throw new Error(`prometheus-adapter does not serve ${metric}`)
}

function recordedSeries(): readonly string[] {
  const { groups } = parse(readFileSync(RULES, 'utf8')) as {
    groups: readonly { readonly rules: readonly { readonly record?: string }[] }[]
  }
  return groups.flatMap(({ rules }) => rules.flatMap(({ record }) => record ?? []))
}

function workerConfig({ spec }: Deployment, manifests: readonly Manifest[]): WorkerConfig {
  const [container] = spec.template.spec.containers
  const maps = (container?.envFrom ?? []).map(({ configMapRef }) => configMapRef?.name ?? '')
  const env = Object.assign({}, ...maps.map((map) => only(ofKind(manifests, 'ConfigMap'), map).data)) as Record<
    string,
    string
  >
  const { pools, drainTimeout, grace, terminationGrace } = readSettings('WORKER', WORKER_SETTINGS, WORKER_RULES, {
    argv: [],
    env,
    readFile: () => '{}',
  })
  if (pools === undefined) throw new Error('BULLPEN_WORKER_POOLS is not set')
  return { pools, drainTimeout, grace, terminationGrace }
}

function only<M extends Manifest>(manifests: readonly M[], name: string): M {
  const found = manifests.find(({ metadata }) => metadata.name === name)
  if (found === undefined) throw new Error(`${name} is not in k8s/rendered/backlog.yaml`)
  return found
}

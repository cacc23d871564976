import { readFileSync } from 'node:fs'
import { readSettings } from '@bullpen/config'
import { milliseconds } from '@bullpen/contract'
import { MAX_WAIT_S } from '@bullpen/contract/internal'
import { dashboardFiles } from '@bullpen/grafana'
import { catalogue } from '@bullpen/tasks'
import { RECORDED_METRICS } from '@bullpen/telemetry'
import { ALERTS, BACKLOG_SHARE, BUSY_SHARE } from '@bullpen/telemetry/alerts'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { RESOURCE_SETTINGS } from '../apps/worker/src/resources/settings.ts'
import { API_RULES, API_SETTINGS } from '../packages/config/src/api-settings.ts'
import { WORKER_RULES, WORKER_SETTINGS } from '../packages/config/src/worker-settings.ts'
import {
  type Container,
  type Deployment,
  KINDS,
  type Manifest,
  ofKind,
  type Probe,
  quantity,
  selects,
} from './manifest.ts'
import {
  committed,
  digestOf,
  hasKubectl,
  inputsDigest,
  KUSTOMIZATIONS,
  type KustomizationName,
  render,
} from './render.ts'

const readme = readFileSync(new URL('README.md', import.meta.url), 'utf8')

/** The secrets that the README tells the reader to create. */
const SECRETS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'bullpen-redis': { REDIS_URL: 'rediss://:password@redis.example:6379' },
  'bullpen-api-keys': { BULLPEN_API_KEYS: '0123456789abcdef0123456789abcdef' },
}

const names = Object.keys(KUSTOMIZATIONS) as KustomizationName[]

describe.each(names)('the manifests of %s', (name) => {
  const manifests = committed(name).objects as Manifest[]
  const deployments = ofKind(manifests, 'Deployment')
  const containers = deployments.flatMap((deployment) =>
    deployment.spec.template.spec.containers.map((container) => ({ deployment, container })),
  )
  const ours = containers.filter(({ container }) => container.image.startsWith('bullpen-'))

  it('are rendered and committed (if this fails, run node k8s/render.ts, which needs kubectl)', () => {
    expect(committed(name).inputs).toBe(inputsDigest())
    // Without kubectl, the digest alone shows that these inputs were rendered.
    if (hasKubectl) expect(render(name)).toEqual(manifests)
  })

  it('contain only kinds that are checked below, each name once', () => {
    for (const { kind } of manifests) expect(KINDS).toContain(kind)
    const keys = manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    expect(new Set(keys).size).toBe(keys.length)
  })

  it('run the API, and workers for each kind of task', () => {
    const programs = ours.map(({ deployment, container }) => `${deployment.metadata.name}: ${container.name}`)
    expect(programs).toEqual(['bullpen-api: api', 'bullpen-worker-cpu: worker', 'bullpen-worker-io: worker'])
    for (const { container } of ours) expect(container.image).toMatch(/^bullpen-(api|worker):[\w.-]+$/)
  })

  it('reference only ConfigMaps, secrets, accounts and volumes that exist', () => {
    for (const { deployment, container } of containers) {
      const pod = deployment.spec.template.spec
      for (const { configMapRef } of container.envFrom ?? []) {
        expect(ofKind(manifests, 'ConfigMap').map(nameOf)).toContain(configMapRef?.name)
      }
      for (const { valueFrom } of container.env ?? []) {
        const { name: secret = '', key = '' } = valueFrom?.secretKeyRef ?? {}
        expect(secretsOf(manifests)[secret], `${secret} ${key}`).toHaveProperty(key)
      }
      if (pod.serviceAccountName !== undefined) {
        expect(ofKind(manifests, 'ServiceAccount').map(nameOf)).toContain(pod.serviceAccountName)
      }
      for (const mount of container.volumeMounts ?? []) {
        expect(pod.volumes?.map((volume) => volume.name)).toContain(mount.name)
      }
    }
  })

  it('have selectors that match pods', () => {
    const pods = deployments.map((deployment) => deployment.spec.template.metadata.labels ?? {})
    const selectors = [
      ...deployments.map(({ spec }) => spec.selector),
      ...deployments.flatMap(({ spec }) =>
        (spec.template.spec.topologySpreadConstraints ?? []).map(({ labelSelector }) => labelSelector),
      ),
      ...ofKind(manifests, 'Service').map(({ spec }) => ({ matchLabels: spec.selector })),
      ...ofKind(manifests, 'PodDisruptionBudget').map(({ spec }) => spec.selector),
      ...ofKind(manifests, 'NetworkPolicy').map(({ spec }) => spec.podSelector),
      ...ofKind(manifests, 'PodMonitor').map(({ spec }) => spec.selector),
    ]
    for (const selector of selectors) {
      expect(
        pods.filter((labels) => selects(selector, labels)),
        JSON.stringify(selector),
      ).not.toEqual([])
    }
    for (const { spec } of deployments) expect(selects(spec.selector, spec.template.metadata.labels ?? {})).toBe(true)
  })

  it('reference only ports that containers open', () => {
    for (const { spec } of ofKind(manifests, 'Service')) {
      const ports = portsOf(deployments.filter((each) => selects({ matchLabels: spec.selector }, podLabels(each))))
      for (const { targetPort } of spec.ports) expect(ports).toContain(targetPort)
    }
    for (const { spec } of ofKind(manifests, 'NetworkPolicy')) {
      const ports = portsOf(deployments.filter((each) => selects(spec.podSelector, podLabels(each))))
      for (const { port } of spec.ingress.flatMap((rule) => rule.ports ?? [])) expect(ports).toContain(port)
    }
    for (const { container } of containers) {
      for (const { port } of probesOf(container)) expect(container.ports?.map((each) => each.name)).toContain(port)
    }
  })

  it('contain settings that the API and the workers accept', () => {
    for (const { container } of ours) {
      const settings = settingsOf(container.name, environmentOf(container, manifests))
      const open = Object.fromEntries((container.ports ?? []).map((port) => [port.name, port.containerPort]))
      if ('metricsPort' in settings) expect(open).toEqual({ http: settings.port, metrics: settings.metricsPort })
      else expect(open).toEqual({ metrics: settings.port })
      expect(settings.host).toBe('0.0.0.0')
    }
  })

  it('give every queue of the catalogue to the workers of one Deployment', () => {
    const queues = ours.flatMap(({ container }) => Object.keys(poolsOf(container, manifests)))
    expect(queues.toSorted()).toEqual(catalogue.queues.toSorted())
  })

  it('probe the endpoints of the programs and point Prometheus at the metrics port', () => {
    for (const { deployment, container } of ours) {
      const { startupProbe, livenessProbe, readinessProbe } = container
      expect(startupProbe?.httpGet?.path).toBe('/livez')
      expect(livenessProbe?.httpGet?.path).toBe('/livez')
      expect(readinessProbe?.httpGet?.path).toBe('/readyz')
      const metrics = container.ports?.find((port) => port.name === 'metrics')?.containerPort
      expect(deployment.spec.template.metadata.annotations).toMatchObject({
        'prometheus.io/scrape': 'true',
        'prometheus.io/port': String(metrics),
        'prometheus.io/path': '/metrics',
      })
    }
  })

  it('give each program enough time to shut down', () => {
    for (const { deployment, container } of ours) {
      const kubernetes = deployment.spec.template.spec.terminationGracePeriodSeconds ?? 30
      const preStop = Number(container.lifecycle?.preStop?.exec?.command.at(-1) ?? 0)
      const settings = settingsOf(container.name, environmentOf(container, manifests))
      if ('drainTimeout' in settings) {
        const [drain, grace, terminationGrace] = [settings.drainTimeout, settings.grace, settings.terminationGrace].map(
          (duration) => milliseconds(duration) / 1_000,
        )
        expect(kubernetes).toBeGreaterThan((drain ?? 0) + (grace ?? 0) + preStop)
        expect(kubernetes - preStop).toBeGreaterThanOrEqual(terminationGrace ?? Number.POSITIVE_INFINITY)
      } else {
        // a waiting look-up is answered before the process exits
        expect(kubernetes).toBeGreaterThan(preStop + MAX_WAIT_S)
      }
    }
  })

  it('run every pod with a hardened security context', () => {
    for (const { deployment, container } of containers) {
      const pod = deployment.spec.template.spec
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
      expect(pod.automountServiceAccountToken).toBe(false)
      expect(container.resources?.limits).toHaveProperty('memory')
    }
  })

  it('disable service links, which would set BULLPEN_API_PORT', () => {
    for (const { spec } of deployments) expect(spec.template.spec.enableServiceLinks).toBe(false)
  })

  it('scale existing Deployments, with stabilization windows, and leave the replicas to the autoscaler', () => {
    const autoscalers = ofKind(manifests, 'HorizontalPodAutoscaler')
    const scaled = [...autoscalers, ...ofKind(manifests, 'ScaledObject')].map(({ spec }) => spec.scaleTargetRef.name)
    // exactly one for each Deployment, because two would undo each other's decisions
    expect(scaled.sort()).toEqual(['bullpen-api', 'bullpen-worker-cpu', 'bullpen-worker-io'])
    for (const { spec } of autoscalers) {
      const target = deployments.find((each) => each.metadata.name === spec.scaleTargetRef.name)
      expect(target).toMatchObject({ apiVersion: spec.scaleTargetRef.apiVersion, kind: spec.scaleTargetRef.kind })
      expect(target?.spec.replicas).toBeUndefined()
      expect(spec.minReplicas).toBeLessThanOrEqual(spec.maxReplicas)
      expect(spec.metrics).not.toEqual([])
      // utilization is relative to the request
      for (const { resources } of target?.spec.template.spec.containers ?? []) {
        expect(resources?.requests).toHaveProperty('cpu')
      }
      expect(spec.behavior?.scaleUp?.stabilizationWindowSeconds).toBeLessThanOrEqual(60)
      expect(spec.behavior?.scaleDown?.stabilizationWindowSeconds).toBeGreaterThanOrEqual(300)
    }
  })

  it('give each program a disruption budget that does not block node drains', () => {
    const budgets = ofKind(manifests, 'PodDisruptionBudget')
    for (const { deployment } of ours) {
      const budget = budgets.find(({ spec }) => selects(spec.selector, podLabels(deployment)))
      expect(budget?.spec.maxUnavailable).toBeGreaterThan(0)
      expect(budget?.spec.minAvailable).toBeUndefined()
      expect(budget?.spec.unhealthyPodEvictionPolicy).toBe('AlwaysAllow')
    }
  })

  it('contain the generated dashboards, labelled for Grafana', () => {
    const labelled = ofKind(manifests, 'ConfigMap').filter(
      (each) => each.metadata.labels?.['grafana_dashboard'] === '1',
    )
    const generated = Object.entries(dashboardFiles())
    expect(labelled.map(({ data }) => data)).toEqual(
      expect.arrayContaining(generated.map(([file, text]) => ({ [`bullpen-${file}`]: digestOf(text) }))),
    )
    expect(labelled.length).toBe(generated.length)
    // kubectl apply stores each object in an annotation, in which the quotes of a dashboard are escaped
    for (const [, text] of generated) expect(JSON.stringify(text).length).toBeLessThan(200_000)
  })

  it('contain no secrets', () => {
    const kept = ofKind(manifests, 'Secret').flatMap(({ data }) => Object.values(data))
    // a URL without a password is not a secret
    expect(kept.map((value) => Buffer.from(value, 'base64').toString())).toEqual(
      name === 'dev' ? ['redis://bullpen-redis:6379'] : [],
    )
  })
})

describe('the secrets', () => {
  it.each(Object.entries(SECRETS))('%s is created by a command in the README', (secret, keys) => {
    const [, command = ''] = new RegExp(`kubectl create secret generic ${secret} ((?:.*\\\\\\n)*.*)`).exec(readme) ?? []
    for (const key of Object.keys(keys)) expect(command).toContain(`${key}=`)
  })
})

describe('with the Prometheus operator', () => {
  const manifests = committed('prometheus-operator').objects as Manifest[]

  it('Prometheus scrapes the metrics port of every program', () => {
    const monitors = ofKind(manifests, 'PodMonitor')
    for (const deployment of ofKind(manifests, 'Deployment')) {
      const monitor = monitors.find(({ spec }) => selects(spec.selector, podLabels(deployment)))
      const [port] = monitor?.spec.podMetricsEndpoints ?? []
      expect(portsOf([deployment])).toContain(port?.port)
      expect(port?.path).toBe('/metrics')
    }
  })

  it('Prometheus evaluates every alert', () => {
    const rules = ofKind(manifests, 'PrometheusRule').flatMap(({ spec }) => spec.groups.flatMap((group) => group.rules))
    expect(rules.flatMap((rule) => rule.alert ?? [])).toEqual(ALERTS.map(({ name }) => name))
  })
})

describe('the workers for CPU-bound tasks', () => {
  const manifests = committed('base').objects as Manifest[]
  const deployment = ofKind(manifests, 'Deployment').find((each) => each.metadata.name === 'bullpen-worker-cpu')
  const [container] = deployment?.spec.template.spec.containers ?? []

  it('run as many tasks at once as their pods have cores', () => {
    expect(container && poolsOf(container, manifests)).toEqual({ cpu: Number(container?.resources?.requests?.['cpu']) })
  })

  it('run long tasks in threads', () => {
    const settings = container && settingsOf(container.name, environmentOf(container, manifests))
    expect(settings).toMatchObject({ poolSettings: { cpu: { isolation: 'thread' } } })
  })
})

/** The series of each queue by which its workers are scaled, and the target for one worker. */
const SIGNALS = {
  'bullpen:queue_backlog_workers': BACKLOG_SHARE,
  'bullpen:queue_busy_workers': BUSY_SHARE,
}

/** Returns the signals of all queues of a Deployment's workers, as lines such as `mail bullpen:queue_busy_workers 0.8`. */
function signalsFor(deployment: string, manifests: readonly Manifest[]): readonly string[] {
  const { spec } = ofKind(manifests, 'Deployment').find((each) => each.metadata.name === deployment) ?? {}
  const queues = (spec?.template.spec.containers ?? []).flatMap((each) => Object.keys(poolsOf(each, manifests)))
  return queues.flatMap((queue) => Object.entries(SIGNALS).map(([series, target]) => `${queue} ${series} ${target}`))
}

describe('scaling on the backlog', () => {
  const manifests = committed('backlog').objects as Manifest[]
  const autoscalers = ofKind(manifests, 'HorizontalPodAutoscaler').filter(
    (each) => each.metadata.name !== 'bullpen-api',
  )
  const config = ofKind(manifests, 'ConfigMap').find((each) => each.metadata.name === 'bullpen-prometheus-adapter')
  const { externalRules } = parse(config?.data['config.yaml'] ?? '') as {
    externalRules: { seriesQuery: string; metricsQuery: string; name: { matches: string; as: string } }[]
  }
  /** The name under which the adapter serves each recorded series. */
  const served = new Map(
    Object.keys(RECORDED_METRICS).flatMap((series) =>
      externalRules.flatMap(({ seriesQuery, name }) => {
        const [, pattern = ''] = /__name__=~"([^"]*)"/.exec(seriesQuery) ?? []
        return new RegExp(pattern).test(series) ? [[series.replace(new RegExp(name.matches), name.as), series]] : []
      }),
    ),
  )

  it.each(autoscalers.map((each) => [nameOf(each), each] as const))(
    '%s reads both series of each of its queues, with the target for one worker',
    (name, { spec }) => {
      const read = spec.metrics.map(({ external }) => {
        const { metric, target } = external ?? {}
        expect(target?.type).toBe('AverageValue')
        const { queue, ...others } = metric?.selector?.matchLabels ?? {}
        expect(others).toEqual({})
        return `${queue} ${served.get(metric?.name ?? '')} ${quantity(target?.averageValue ?? '')}`
      })
      expect(read.toSorted()).toEqual(signalsFor(name, manifests).toSorted())
    },
  )

  it('the adapter serves one value per queue, of the installation in its own namespace', () => {
    for (const { seriesQuery, metricsQuery } of externalRules) {
      expect(seriesQuery).toContain('namespace!=""')
      expect(metricsQuery).toBe('max(<<.Series>>{<<.LabelMatchers>>}) by (queue)')
    }
    expect(readme).toContain('rules.existing=bullpen-prometheus-adapter')
  })

  it('KEDA scales in the same way', () => {
    const keda = committed('keda').objects as Manifest[]
    for (const { metadata, spec } of ofKind(keda, 'ScaledObject')) {
      const { metadata: _, spec: autoscaler } = autoscalers.find((each) => nameOf(each) === metadata.name) ?? {}
      expect([spec.minReplicaCount, spec.maxReplicaCount]).toEqual([autoscaler?.minReplicas, autoscaler?.maxReplicas])
      expect(spec.advanced.horizontalPodAutoscalerConfig.behavior).toEqual(autoscaler?.behavior)
      const read = spec.triggers.map(({ type, metricType, metadata: { query = '', threshold, ignoreNullValues } }) => {
        // otherwise, KEDA would scale down while Prometheus has no data
        expect([type, metricType, ignoreNullValues]).toEqual(['prometheus', 'AverageValue', 'false'])
        const [, series, queue] = /^max\(([\w:]+)\{namespace="bullpen", queue="(\w+)"\}\)$/.exec(query) ?? []
        return `${queue} ${series} ${threshold}`
      })
      expect(read.toSorted()).toEqual(signalsFor(metadata.name, keda).toSorted())
    }
  })
})

function nameOf({ metadata }: Manifest): string {
  return metadata.name
}

function podLabels(deployment: Deployment) {
  return deployment.spec.template.metadata.labels ?? {}
}

function portsOf(deployments: readonly Deployment[]): (string | number)[] {
  return deployments.flatMap(({ spec }) =>
    spec.template.spec.containers.flatMap(({ ports = [] }) => ports.map((port) => port.name)),
  )
}

function probesOf({ startupProbe, livenessProbe, readinessProbe }: Container): { port: string | number }[] {
  return [startupProbe, livenessProbe, readinessProbe]
    .filter((probe): probe is Probe => probe !== undefined)
    .flatMap(({ httpGet, tcpSocket }) => [httpGet, tcpSocket])
    .filter((check) => check !== undefined)
}

function secretsOf(manifests: readonly Manifest[]): Record<string, Record<string, string>> {
  const made = ofKind(manifests, 'Secret').map(({ metadata, data }) => [
    metadata.name,
    Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()])),
  ])
  return { ...SECRETS, ...Object.fromEntries(made) }
}

/** The environment that Kubernetes would set. */
function environmentOf(container: Container | undefined, manifests: readonly Manifest[]): Record<string, string> {
  const maps = Object.fromEntries(ofKind(manifests, 'ConfigMap').map(({ metadata, data }) => [metadata.name, data]))
  const secrets = secretsOf(manifests)
  const environment: Record<string, string> = {}
  for (const { configMapRef } of container?.envFrom ?? []) Object.assign(environment, maps[configMapRef?.name ?? ''])
  for (const { name, value, valueFrom } of container?.env ?? []) {
    const { name: secret = '', key = '' } = valueFrom?.secretKeyRef ?? {}
    environment[name] = value ?? secrets[secret]?.[key] ?? ''
  }
  return environment
}

/** Returns the pools of a worker by queue, and none for an API. */
function poolsOf(container: Container, manifests: readonly Manifest[]): Readonly<Record<string, number>> {
  const settings = settingsOf(container.name, environmentOf(container, manifests))
  return 'pools' in settings ? (settings.pools ?? {}) : {}
}

/** Reads the settings as the program does. @throws BullpenError for unknown, invalid or contradictory settings */
function settingsOf(app: string, env: Record<string, string>) {
  const sources = { argv: [], env, readFile: () => '{}' }
  return app === 'api'
    ? readSettings('API', API_SETTINGS, API_RULES, sources)
    : readSettings('WORKER', { ...WORKER_SETTINGS, ...RESOURCE_SETTINGS }, WORKER_RULES, sources)
}

// The files of the page on deploying fit the tutorial's project and the settings of its programs.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { API_RULES, API_SETTINGS, readSettings, WORKER_RULES, WORKER_SETTINGS } from '@bullpen/config'
import { milliseconds } from '@bullpen/contract'
import { describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'

const KEY = 'x'.repeat(20)
const tutorial = join(import.meta.dirname, '../tutorial')
const read = (name: string): string => readFileSync(join(import.meta.dirname, 'deploy', name), 'utf8')

/** Returns what runs the pods, which a ServiceAccount may precede. */
const workloadIn = (name: string) => parseAllDocuments(read(name)).at(-1)?.toJS()

const sources = (env: Record<string, string>) => ({ argv: [], env, readFile: () => '{}' })
const workerSettings = (env: Record<string, string>) =>
  readSettings('WORKER', WORKER_SETTINGS, WORKER_RULES, sources(env))
const apiSettings = (env: Record<string, string>) => readSettings('API', API_SETTINGS, API_RULES, sources(env))

it('the Dockerfile starts a program of the tutorial and exposes the default ports', () => {
  const dockerfile = read('Dockerfile')
  const [, program = ''] = /^CMD \["node", "(.*)"\]$/m.exec(dockerfile) ?? []
  expect(existsSync(join(tutorial, program))).toBe(true)
  const api = apiSettings({ BULLPEN_API_KEYS: KEY })
  expect(/^EXPOSE (.*)$/m.exec(dockerfile)?.[1]?.split(' ').map(Number)).toEqual([
    api.port,
    api.metricsPort,
    workerSettings({}).port,
  ])
})

describe('the compose file', () => {
  const { api, worker, redis } = parse(read('compose.yaml')).services

  it('runs programs of the tutorial with settings that they accept', () => {
    expect(existsSync(join(tutorial, api.command[1]))).toBe(true)
    expect(api.environment.BULLPEN_API_KEYS).toMatch(/^\$\{BULLPEN_API_KEYS:\?.*20 characters.*\}$/)
    const { host, port } = apiSettings({ ...api.environment, BULLPEN_API_KEYS: KEY })
    expect(host).toBe('0.0.0.0')
    expect(api.ports).toEqual([`127.0.0.1:${port}:${port}`])
    expect(workerSettings(worker.environment).host).toBe('0.0.0.0')
  })

  it('gives a worker enough time to drain', () => {
    const { terminationGrace } = workerSettings(worker.environment)
    expect(milliseconds(worker.stop_grace_period)).toBeGreaterThan(milliseconds(terminationGrace))
  })

  it('runs a Redis that keeps its data and that other containers can reach', () => {
    expect(redis.command).toMatch(/--appendonly yes .*--maxmemory-policy noeviction .*--protected-mode no/)
    expect(redis.ports).toBeUndefined()
  })
})

it('the compose file sets what `bullpen doctor` expects of Redis', () => {
  const { redis } = parse(read('compose.yaml')).services
  expect(redis.command).toMatch(/--maxmemory \d+gb .*--hash-max-listpack-value 1024/)
})

it.each(['worker.yaml', 'job.yaml'])('the pods of %s pass the Pod Security Standard "restricted"', (name) => {
  const { spec } = workloadIn(name).spec.template
  expect(spec.automountServiceAccountToken).toBe(false)
  expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
  for (const { securityContext, volumeMounts } of spec.containers) {
    expect(securityContext).toMatchObject({ allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } })
    expect([securityContext.readOnlyRootFilesystem, volumeMounts]).toEqual([true, [{ name: 'tmp', mountPath: '/tmp' }]])
  }
})

it('the pods have accounts of their own without permissions or tokens', () => {
  const [account] = parseAllDocuments(read('worker.yaml')).map((document) => document.toJS())
  expect(account).toMatchObject({ kind: 'ServiceAccount', automountServiceAccountToken: false })
  expect(workloadIn('worker.yaml').spec.template.spec.serviceAccountName).toBe(account.metadata.name)
  // `kubectl create` adds each Job, but the account only once.
  const created = `kubectl create serviceaccount ${workloadIn('job.yaml').spec.template.spec.serviceAccountName}`
  expect(readFileSync(join(import.meta.dirname, 'batch-jobs.md'), 'utf8')).toContain(created)
})

describe('the Deployment', () => {
  const { selector, template } = workloadIn('worker.yaml').spec
  const [container] = template.spec.containers
  const env = Object.fromEntries(
    container.env.map(({ name, value }: { name: string; value?: string }) => [name, value ?? 'redis://redis:6379']),
  )

  it('has settings that the worker accepts, and the same grace period as the pod', () => {
    const settings = workerSettings(env)
    expect(settings.host).toBe('0.0.0.0')
    expect(milliseconds(settings.terminationGrace)).toBe(template.spec.terminationGracePeriodSeconds * 1_000)
  })

  it('selects its own pods, and probes and scrapes the port of the worker', () => {
    expect(template.metadata.labels).toEqual(selector.matchLabels)
    const [port] = container.ports
    expect(port.containerPort).toBe(workerSettings(env).port)
    expect(template.metadata.annotations['prometheus.io/port']).toBe(String(port.containerPort))
    for (const probe of [container.startupProbe, container.livenessProbe, container.readinessProbe]) {
      expect(probe.httpGet.port).toBe(port.name)
    }
  })
})

describe('the Job', () => {
  const { template, backoffLimit, podFailurePolicy } = workloadIn('job.yaml').spec
  const [container] = template.spec.containers
  const [, program, ...argv] = container.args
  const env = Object.fromEntries(
    container.env.map(({ name, value }: { name: string; value?: string }) => [name, value ?? 'redis://redis:6379']),
  )

  it('runs a program of the tutorial for one group, with settings that the worker accepts', () => {
    expect(existsSync(join(tutorial, program))).toBe(true)
    const settings = readSettings('WORKER', WORKER_SETTINGS, WORKER_RULES, { ...sources(env), argv })
    expect(settings).toMatchObject({ group: expect.stringMatching(/^group-/), host: '0.0.0.0' })
    expect(milliseconds(settings.terminationGrace)).toBe(template.spec.terminationGracePeriodSeconds * 1_000)
    expect(container.ports[0].containerPort).toBe(settings.port)
  })

  it('starts another pod when one fails, unless the worker could not start', () => {
    expect([template.spec.restartPolicy, backoffLimit > 0]).toEqual(['Never', true])
    expect(podFailurePolicy.rules).toContainEqual({
      action: 'FailJob',
      onExitCodes: { containerName: container.name, operator: 'In', values: [2] },
    })
  })
})

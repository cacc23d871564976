import { existsSync, readFileSync } from 'node:fs'
import { readSettings } from '@bullpen/config'
import { milliseconds } from '@bullpen/contract'
import { promtool } from '@bullpen/testing'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { RESOURCE_SETTINGS } from '../apps/worker/src/resources/settings.ts'
import { API_RULES, API_SETTINGS } from '../packages/config/src/api-settings.ts'
import { WORKER_RULES, WORKER_SETTINGS } from '../packages/config/src/worker-settings.ts'

interface ComposeService {
  readonly image: string
  readonly build?: { readonly target: string }
  readonly environment?: Readonly<Record<string, string>>
  readonly command?: readonly string[]
  readonly ports?: readonly string[]
  readonly volumes?: readonly string[]
  readonly scale?: number
  readonly read_only: boolean
  readonly cap_drop: readonly string[]
  readonly security_opt: readonly string[]
  readonly stop_grace_period: `${number}s`
}

const root = new URL('../', import.meta.url)
const dockerfile = readFileSync(new URL('Dockerfile', root), 'utf8')
const { services, volumes } = parse(readFileSync(new URL('docker-compose.yml', root), 'utf8'), { merge: true }) as {
  services: Record<'redis' | 'api' | 'worker' | 'prometheus' | 'grafana', ComposeService>
  volumes: Readonly<Record<string, unknown>>
}
const stages = Object.fromEntries(
  dockerfile
    .split(/^FROM /m)
    .slice(1)
    .map((stage) => [/^\S+ AS (\S+)/.exec(stage)?.[1], stage]),
)

describe.each(['api', 'worker'])('the image of %s', (app) => {
  const stage = stages[app] ?? ''

  it('runs node directly, as an unprivileged user, with a health check', () => {
    expect(stage).toContain(`CMD ["node", "apps/${app}/src/main.ts"]`)
    expect(stage).toMatch(/^USER 1000:1000$/m)
    expect(stage).toMatch(/^HEALTHCHECK .*CMD \["node", .*\/livez/m)
  })

  it('sets the listening address with settings that the program accepts', () => {
    const [, block = ''] = /^ENV ((?:.*\\\n)*.*)$/m.exec(stage) ?? []
    const env = Object.fromEntries(block.split(/[\s\\]+/).map((setting) => setting.split('=')))
    const settings = settingsOf(app, { ...env, BULLPEN_API_KEYS: 'x'.repeat(20) })
    const exposed = /^EXPOSE (.*)$/m.exec(stage)?.[1]?.split(' ').map(Number)
    expect(exposed).toEqual('metricsPort' in settings ? [settings.port, settings.metricsPort] : [settings.port])
    expect(settings.host).toBe('0.0.0.0')
  })

  it('has what Node has compiled for the user who runs the program', () => {
    expect(stage).toMatch(
      new RegExp(
        `^USER .*\\nENV NODE_COMPILE_CACHE=/app/compile-cache\\nRUN node apps/${app}/src/main.ts --help$`,
        'm',
      ),
    )
  })

  it('accepts the settings of the compose file', () => {
    expect(() => settingsOf(app, substituted(services[app as 'api' | 'worker'].environment))).not.toThrow()
  })
})

describe('the compose file', () => {
  it('starts three workers', () => {
    expect(services.worker.scale).toBe(3)
  })

  it.each(Object.entries(services))('runs %s on a read-only file system and without capabilities', (_, service) => {
    expect(service.read_only).toBe(true)
    expect(service.cap_drop).toEqual(['ALL'])
    expect(service.security_opt).toEqual(['no-new-privileges:true'])
  })

  it('mounts DIR in each worker under the same path and lets tasks read nothing else', () => {
    const [mounted = ''] = services.worker.volumes ?? []
    expect(mounted).toMatch(/^\$\{DIR:-[^}]*\}:\$\{DIR:-([^}]*)\}:ro$/)
    expect(services.worker.environment).toMatchObject({
      BULLPEN_WORKER_FILES_ROOTS: mounted.split('}:')[1]?.concat('}'),
    })
  })

  it('refuses to start without an API key and says what one is', () => {
    expect(services.api.environment?.['BULLPEN_API_KEYS']).toMatch(/^\$\{BULLPEN_API_KEYS:\?.*20 characters.*\}$/)
  })

  it('publishes ports on loopback only, and none of Redis', () => {
    const published = Object.values(services).flatMap(({ ports = [] }) => ports)
    expect(published.length).toBeGreaterThan(2)
    for (const port of published) expect(port).toMatch(/^127\.0\.0\.1:/)
    expect([services.redis.ports, services.worker.ports]).toEqual([undefined, undefined])
  })

  it('gives a worker enough time to shut down', () => {
    const settings = settingsOf('worker', substituted(services.worker.environment))
    const terminationGrace = 'terminationGrace' in settings ? milliseconds(settings.terminationGrace) : Number.NaN
    expect(milliseconds(services.worker.stop_grace_period)).toBeGreaterThan(terminationGrace)
  })

  it('runs a Redis that keeps its data across restarts and evicts nothing', () => {
    const command = services.redis.command?.join(' ')
    expect(command).toContain('--appendonly yes --appendfsync everysec')
    expect(command).toMatch(/--maxmemory \$\{REDIS_MAXMEMORY:-1gb\} --maxmemory-policy noeviction/)
    expect(command).toContain('--hash-max-listpack-value 1024')
  })
})

describe('Prometheus and Grafana of the compose file', () => {
  const mounted = ({ volumes: mounts = [] }: ComposeService): Readonly<Record<string, string>> =>
    Object.fromEntries(mounts.map((mount) => [mount.split(':')[1] ?? '', mount.split(':')[0] ?? '']))
  const read = (path = ''): string => readFileSync(new URL(path, root), 'utf8')
  const inPrometheus = mounted(services.prometheus)
  const inGrafana = mounted(services.grafana)

  it('mount only files that exist, and volumes', () => {
    for (const source of [...Object.values(inPrometheus), ...Object.values(inGrafana)]) {
      expect(source in volumes || existsSync(new URL(source, root)), source).toBe(true)
    }
  })

  it('use a configuration that promtool accepts, and the alerts', async () => {
    const config = inPrometheus['/etc/prometheus/prometheus.yml'] ?? ''
    const path = new URL(config, root).pathname
    expect((await promtool(['check', 'config', '--syntax-only', path])).code).toBe(0)
    const { rule_files } = parse(read(config)) as { rule_files: readonly string[] }
    expect(rule_files.map((file) => inPrometheus[file])).toEqual(['./k8s/alerts/bullpen.rules.yaml'])
  })

  it('scrape the API and the workers at the ports on which their images serve metrics', () => {
    const { scrape_configs } = parse(read(inPrometheus['/etc/prometheus/prometheus.yml'])) as {
      scrape_configs: readonly { dns_sd_configs: readonly { names: readonly ('api' | 'worker')[]; port: number }[] }[]
    }
    const scraped = scrape_configs.flatMap(({ dns_sd_configs }) => dns_sd_configs)
    expect(scraped.map(({ names, port }) => [names, port])).toEqual([
      [['api'], 9464],
      [['worker'], 9464],
    ])
    for (const { names, port } of scraped) {
      for (const name of names) {
        expect(services).toHaveProperty(name)
        expect(stages[name]).toMatch(new RegExp(`^EXPOSE .*\\b${port}$`, 'm'))
      }
    }
  })

  it('show the dashboards with this Prometheus as their data source', () => {
    const provisioned = (kind: string) => `${inGrafana[`/etc/grafana/provisioning/${kind}`]}/`
    const { datasources } = parse(read(`${provisioned('datasources')}prometheus.yaml`)) as {
      datasources: readonly { type: string; url: string; isDefault: boolean }[]
    }
    expect(datasources).toMatchObject([{ type: 'prometheus', url: 'http://prometheus:9090', isDefault: true }])
    const { providers } = parse(read(`${provisioned('dashboards')}bullpen.yaml`)) as {
      providers: readonly { options: { path: string } }[]
    }
    expect(providers.map(({ options }) => inGrafana[options.path])).toEqual(['./k8s/base/dashboards'])
    const home = services.grafana.environment?.['GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH'] ?? ''
    const folder = Object.keys(inGrafana).find((path) => home.startsWith(`${path}/`)) ?? ''
    expect(existsSync(new URL(`${inGrafana[folder]}${home.slice(folder.length)}`, root))).toBe(true)
  })

  it('lead from Bull Board to a dashboard that exists', () => {
    const url = new URL(substituted(services.api.environment)['BULLPEN_API_GRAFANA_URL'] ?? '')
    const { uid } = JSON.parse(read('k8s/base/dashboards/fleet.json')) as { uid: string }
    expect(url.pathname).toBe(`/d/${uid}`)
    expect(services.grafana.ports?.[0]).toContain(`:-${url.port}}`)
  })
})

/** Replaces variables by their defaults, and a required key by an example. */
function substituted(environment: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(environment).map(([name, text]) => [
      name,
      text.replace(/\$\{\w+:-([^}]*)\}/g, '$1').replace(/\$\{\w+:\?[^}]*\}/g, 'x'.repeat(20)),
    ]),
  )
}

function settingsOf(app: string, env: Record<string, string>) {
  const sources = { argv: [], env, readFile: () => '{}' }
  return app === 'api'
    ? readSettings('API', API_SETTINGS, API_RULES, sources)
    : readSettings('WORKER', { ...WORKER_SETTINGS, ...RESOURCE_SETTINGS }, WORKER_RULES, sources)
}

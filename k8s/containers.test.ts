import { readFileSync } from 'node:fs'
import { readSettings } from '@bullpen/config'
import { milliseconds } from '@bullpen/contract'
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
const { services } = parse(readFileSync(new URL('docker-compose.yml', root), 'utf8'), { merge: true }) as {
  services: Record<'redis' | 'api' | 'worker', ComposeService>
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

  it('accepts the settings of the compose file', () => {
    expect(() => settingsOf(app, substituted(services[app as 'api' | 'worker'].environment))).not.toThrow()
  })
})

describe('the compose file', () => {
  it('starts two workers', () => {
    expect(services.worker.scale).toBe(2)
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
    for (const port of services.api.ports ?? []) expect(port).toMatch(/^127\.0\.0\.1:/)
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
    expect(command).toContain('--maxmemory-policy noeviction')
    expect(command).toContain('--hash-max-listpack-value 1024')
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

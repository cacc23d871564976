// Builds, starts, stops and removes the containers of docker-compose.yml.
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { provideImage } from './prometheus/prometheus-image.ts'

export interface Compose {
  /** Builds the images and starts everything except for Grafana, with the given number of workers. */
  up(workers: number): Promise<void>
  /** Returns the ids of the workers' containers, oldest first. */
  workers(): Promise<readonly string[]>
  /** Starts one more worker. Resolves with its container's id when the worker is ready. */
  addWorker(): Promise<string>
  /** Stops a container as `docker stop` does, with SIGTERM and then SIGKILL, and removes it. */
  stop(container: string, killAfterS: number): Promise<{ readonly code: number; readonly tookMs: number }>
  /** Returns the API's URL. */
  apiUrl(): Promise<string>
  /** Returns Prometheus's URL. */
  prometheusUrl(): Promise<string>
  /** Returns Redis's URL. On Linux, the containers' network can be reached from the host. */
  redisUrl(): Promise<string>
  /** Returns the output of the workers that still exist. */
  logs(): Promise<string>
  /** Removes everything, including the stored tasks. */
  down(): Promise<void>
}

export interface ComposeOptions {
  readonly project: string
  /** The variables of docker-compose.yml. */
  readonly env: Readonly<Record<string, string>>
  /** Variables for the workers in addition to those of docker-compose.yml. */
  readonly workerEnv: Readonly<Record<string, string>>
  /** The folder for the file with these variables. */
  readonly dir: string
}

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url))
const READY_WITHIN_MS = 60_000
const POLL_MS = 250

/** The host name under which a container reaches its host. */
export const HOST = 'host.docker.internal'

/** Grafana only shows what Prometheus has, so it is not started. */
const SERVICES = ['redis', 'api', 'worker', 'prometheus']

const run = promisify(execFile)

function prometheusImage(): string {
  const [image] = /(?<=image: )prom\/prometheus:\S+/.exec(readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8')) ?? []
  if (image === undefined) throw new Error('docker-compose.yml names no image of Prometheus')
  return image
}

async function output(file: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<string> {
  const { stdout } = await run(file, [...args], { cwd: ROOT, env, maxBuffer: 64 * 2 ** 20 })
  return stdout.trim()
}

/** Returns the command of the Docker plugin if the plugin is installed, and of the older program otherwise. */
async function composeCommand(): Promise<readonly [string, ...string[]]> {
  return output('docker', ['compose', 'version']).then(
    () => ['docker', 'compose'] as const,
    () => ['docker-compose'] as const,
  )
}

/** @throws Error if no Docker engine responds. */
export async function openCompose({ project, env, workerEnv, dir }: ComposeOptions): Promise<Compose> {
  await output('docker', ['info', '--format', '{{.ServerVersion}}'])
  const [program, ...first] = await composeCommand()
  const own = join(dir, 'drill.json')
  const worker = { environment: workerEnv, extra_hosts: [`${HOST}:host-gateway`] }
  // The file contains JSON, which is valid YAML.
  writeFileSync(own, JSON.stringify({ services: { worker } }))
  const base = [...first, '--project-name', project, '--project-directory', ROOT]
  const files = ['-f', join(ROOT, 'docker-compose.yml'), '-f', own]
  const compose = (...args: readonly string[]): Promise<string> =>
    output(program, [...base, ...files, ...args], { ...process.env, ...env })
  const inspect = (container: string, format: string): Promise<string> =>
    output('docker', ['inspect', '--format', format, container])

  const ids = async (service: string): Promise<readonly string[]> => {
    const found = (await compose('ps', '-q', service)).split('\n').filter((id) => id !== '')
    const since = await Promise.all(found.map(async (id) => ({ id, at: await inspect(id, '{{.Created}}') })))
    return since.sort((a, b) => a.at.localeCompare(b.at)).map(({ id }) => id)
  }

  const ready = async (container: string): Promise<void> => {
    const look = "fetch('http://127.0.0.1:9464/readyz').then((a) => process.exit(a.ok ? 0 : 1), () => process.exit(1))"
    const deadline = performance.now() + READY_WITHIN_MS
    for (;;) {
      const answers = await output('docker', ['exec', container, 'node', '-e', look]).then(
        () => true,
        () => false,
      )
      if (answers) return
      if (performance.now() > deadline) throw new Error(`the worker in ${container} was not ready in time`)
      await sleep(POLL_MS)
    }
  }

  return {
    async up(workers) {
      // The images are not built by compose, because only `docker build` can use the machine's own connection to the package
      // registry.
      for (const target of ['api', 'worker']) {
        await output('docker', [
          'build',
          '--quiet',
          '--network',
          'host',
          '--target',
          target,
          '-t',
          `bullpen-${target}`,
          '.',
        ])
      }
      await provideImage(prometheusImage(), dir)
      await compose('up', '-d', '--scale', `worker=${workers}`, ...SERVICES)
      for (const container of await ids('worker')) await ready(container)
    },
    workers: () => ids('worker'),
    async addWorker() {
      const before = await ids('worker')
      await compose('up', '-d', '--no-recreate', '--no-deps', '--scale', `worker=${before.length + 1}`, 'worker')
      const added = (await ids('worker')).find((id) => !before.includes(id))
      if (added === undefined) throw new Error('compose did not start another worker')
      await ready(added)
      return added
    },
    async stop(container, killAfterS) {
      const startedAt = performance.now()
      await output('docker', ['stop', '-t', String(killAfterS), container])
      const tookMs = Math.round(performance.now() - startedAt)
      const code = Number(await inspect(container, '{{.State.ExitCode}}'))
      await output('docker', ['rm', container])
      return { code, tookMs }
    },
    apiUrl: async () => `http://${await compose('port', 'api', '8080')}`,
    prometheusUrl: async () => `http://${await compose('port', 'prometheus', '9090')}`,
    async redisUrl() {
      const [container = ''] = await ids('redis')
      const address = await inspect(container, '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}')
      return `redis://${address}:6379`
    },
    logs: () => compose('logs', '--no-color', 'worker'),
    async down() {
      await compose('down', '--volumes', '--timeout', '1')
    },
  }
}

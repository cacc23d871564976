// Starts and stops the platform on this machine: Redis, a mail stub, the API and two workers, and Prometheus if it is asked for.
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { resolvePrometheus } from '../prometheus/programs.mjs'
import { startPrometheus } from '../prometheus/server.mjs'
import { restartOnExit } from '../redis/auto-restart.mjs'
import { deleteNamespace } from '../redis/delete-namespace.mjs'
import { resolveRedis } from '../redis/resolve.mjs'
import { runningServer } from '../redis/server.mjs'
import { statusOf } from '../system/http-status.mjs'
import { freePorts, nextFreePort } from '../system/ports.mjs'
import { UserError } from '../system/user-error.mjs'
import { terminalLine } from './log-line.mjs'
import { startMailStub } from './mail-stub.mjs'
import { removePlatform, runningPlatform, writePlatform } from './platform-record.mjs'
import { supervise } from './supervise.mjs'

const HOST = '127.0.0.1'
const READY_TIMEOUT = 120_000 // in ms, because beside other load, a program takes ten times as long to start
const TAIL = 30 // how many lines of output are shown if a process does not become ready

export const root = resolve(import.meta.dirname, '../..')

const STOPPED = 'stopped before it was ready'

/**
 * @typedef {object} Options
 * @property {string} home where data, key, logs and the record are kept
 * @property {string[]} filesRoots what the workers may read
 * @property {boolean} [fresh] delete all data first
 * @property {boolean} [observe] start Prometheus with Bullpen's alerts
 * @property {boolean} [installRedis] install Redis if there is none
 * @property {boolean} [handlerLogs] show what handlers log, in addition to problems
 * @property {boolean} [anyPorts] use any free ports instead of the well-known ones
 * @property {string} [namespace] a namespace of its own, which keeps its tasks apart on a Redis that others use. All of its keys are
 *   deleted when the platform stops
 * @property {NodeJS.ProcessEnv} [env] of the children
 * @property {(line: string) => void} say
 */

/**
 * Creates a platform that is not up yet. `down` may be called at any time, even while `up` is running.
 * @param {Options} options
 */
export function createPlatform({
  home,
  filesRoots,
  namespace,
  fresh = false,
  observe = false,
  installRedis = false,
  handlerLogs = false,
  anyPorts = false,
  env = process.env,
  say,
}) {
  const closers = new AsyncDisposableStack() // closes in the reverse order of opening
  /** @type {Map<string, ReturnType<typeof supervise>>} */
  const children = new Map()
  /** @type {Map<string, string>} */
  const urls = new Map()
  /**
   * @type {Map<string, { line: string, stream: 'stdout' | 'stderr' }[]>} the output of processes that are not ready yet, by name
   */
  const starting = new Map()
  let startup
  let shutdown
  let record

  async function start() {
    const other = await runningPlatform(home)
    if (other !== undefined) throw new UserError(`the platform is already running, at ${other.apiUrl}`)
    if (observe) await resolvePrometheus() // so that nothing is started if it is missing
    const dataDir = join(home, 'redis')
    if (fresh) {
      await deleteData(dataDir)
      rmSync(join(home, 'prometheus'), { recursive: true, force: true })
    }
    mkdirSync(join(home, 'logs'), { recursive: true })

    const redis = await resolveRedis({ env, dataDir, say, ...(installRedis && { mayInstall: true }) })
    const restarter = restartOnExit(redis, say)
    closers.defer(() => restarter.stop())
    // A server that was started here ends with its data.
    if (namespace && redis.origin === 'env') closers.defer(() => deleteOwnKeys(redis.url))
    if (shutdown) throw new UserError(STOPPED)
    const ports = await pickPorts({ env, anyPorts, observe, say })
    const mail = await startMailStub({ port: 0, host: HOST })
    closers.defer(mail.close)

    const key = developmentKey(home)
    const shared = {
      ...env,
      REDIS_URL: redis.url,
      BULLPEN_ENV: 'development',
      BULLPEN_LOG_LEVEL: env.BULLPEN_LOG_LEVEL || 'info',
      ...(namespace && { BULLPEN_NAMESPACE: namespace }),
    }
    const api = {
      name: 'api',
      url: `http://${HOST}:${ports.api}`,
      metrics: `http://${HOST}:${ports.apiMetrics}/metrics`,
    }
    const workers = ports.workers.map((port, i) => ({ name: `worker-${i + 1}`, port, url: `http://${HOST}:${port}` }))
    record = { pid: process.pid, apiUrl: api.url, key, redisUrl: redis.url, filesRoots, workers: [] }

    closers.defer(() => Promise.all([...children.values()].map((child) => child.stop())))
    launch('api', 'apps/api/src/main.ts', {
      ...shared,
      BULLPEN_API_HOST: HOST,
      BULLPEN_API_PORT: String(ports.api),
      BULLPEN_API_METRICS_PORT: String(ports.apiMetrics),
      BULLPEN_API_DEV_KEY: key,
    })
    for (const { name, port } of workers) {
      launch(name, 'apps/worker/src/main.ts', {
        ...shared,
        BULLPEN_WORKER_HOST: HOST,
        BULLPEN_WORKER_PORT: String(port),
        BULLPEN_WORKER_FILES_ROOTS: filesRoots.join(':'),
        // The list of `npm run demo` is one output, of about 100 bytes per file.
        BULLPEN_WORKER_MAX_OUTPUT_BYTES: env.BULLPEN_WORKER_MAX_OUTPUT_BYTES || '16777216',
        BULLPEN_WORKER_RECEIPT_ENDPOINT: mail.url,
      })
    }
    for (const { name, url } of [api, ...workers]) urls.set(name, url)
    await Promise.all([...urls.keys()].map(untilReady))
    const prometheus = observe ? await scrape([ports.apiMetrics, ...ports.workers], ports.prometheus) : undefined
    record.workers = workers.map(({ name, url }) => ({ name, pid: children.get(name).pid, url }))
    writePlatform(home, record)
    closers.defer(() => removePlatform(home))
    return { ...record, api, redis, prometheus }
  }

  /** Starts a Prometheus that scrapes these ports. */
  async function scrape(targets, port) {
    const dir = join(home, 'prometheus')
    const server = await startPrometheus({ dir, port, targets: targets.map((target) => `${HOST}:${target}`) })
    closers.defer(server.stop)
    return server
  }

  function launch(name, main, childEnv) {
    starting.set(name, [])
    const child = supervise({
      name,
      command: process.execPath,
      args: ['--import', join(import.meta.dirname, 'exit-with-parent.mjs'), main],
      cwd: root,
      env: childEnv,
      logFile: logOf(name),
      say,
      onLine(line, stream) {
        const output = starting.get(name)
        if (output !== undefined) {
          output.push({ line, stream }) // shown all at once if the start fails
          return
        }
        const shown = terminalLine(line, stream, { handlers: handlerLogs })
        if (shown !== undefined) say(`${name}  ${shown}`)
      },
      onStart(pid) {
        const worker = record.workers.find((one) => one.name === name)
        if (worker === undefined) return
        worker.pid = pid
        writePlatform(home, record)
      },
      onDeath: () => !starting.has(name), // a process that failed to start would fail again
    })
    children.set(name, child)
  }

  async function deleteOwnKeys(url) {
    try {
      await deleteNamespace(url, namespace)
    } catch (error) {
      say(`The keys of the namespace ${namespace} could not be deleted: ${error.message}`)
    }
  }

  const logOf = (name) => join(home, 'logs', `${name}.log`)

  async function untilReady(name) {
    const child = children.get(name)
    const deadline = performance.now() + READY_TIMEOUT
    while (!shutdown && child.running() && performance.now() < deadline) {
      if ((await statusOf(`${urls.get(name)}/readyz`)) === 200) {
        starting.delete(name)
        return
      }
      await sleep(50)
    }
    if (shutdown) throw new UserError(STOPPED)
    const timedOut = child.running()
    if (!timedOut) await child.outputRead()
    const what = timedOut ? `was not ready within ${READY_TIMEOUT / 1000} s` : 'exited before it was ready'
    throw new UserError(
      `${name} ${what}. Its last output (all of it is in ${logOf(name)}):\n${tail(starting.get(name))}`,
    )
  }

  return {
    up() {
      startup = start()
      return startup
    },
    /** The supervised processes by name: api, worker-1, worker-2. */
    children,
    /** Drains one process, starts it with the current code, and waits until it is ready. Rejects if it fails to start. */
    async restart(name) {
      const child = children.get(name)
      await child.restart(() => starting.set(name, []))
      await untilReady(name)
    },
    /** Adds a part that is closed before all others. */
    beforeDown: (close) => closers.defer(close),
    /** Drains the workers and the API, then stops Redis. Each process limits its own drain. */
    down() {
      // A part that is still being opened can be closed only once it is open.
      shutdown ??= Promise.allSettled([startup]).then(() => closers.disposeAsync())
      return shutdown
    },
    /** Kills the workers and the API. Redis is still stopped with SIGTERM, because it needs a few ms to write its data. */
    kill() {
      for (const child of children.values()) child.kill()
    },
    get stopping() {
      return shutdown !== undefined
    },
  }
}

/** Returns the problems in a process's output, or the whole output if it contains none. */
function tail(lines = []) {
  const problems = lines.flatMap(({ line, stream }) => terminalLine(line, stream) ?? [])
  return (problems.length > 0 ? problems : lines.map(({ line }) => line)).slice(-TAIL).join('\n')
}

async function deleteData(dataDir) {
  const server = await runningServer(dataDir)
  if (server !== undefined) {
    throw new UserError(`Redis (process ${server.pid}) is using ${dataDir}; stop it before its data is deleted`)
  }
  rmSync(dataDir, { recursive: true, force: true })
}

async function pickPorts({ env, anyPorts, observe, say }) {
  if (anyPorts) {
    const [api, apiMetrics, prometheus, ...workers] = await freePorts(5)
    return { api, apiMetrics, prometheus, workers }
  }
  const taken = []
  const pick = async (what, wanted) => {
    if (!Number.isInteger(wanted) || wanted < 0 || wanted > 65_535) {
      throw new UserError(`the port for ${what} must be a whole number from 0 to 65535`)
    }
    const port = await nextFreePort(wanted, { host: HOST, taken })
    if (port !== wanted) say(`Port ${wanted} for ${what} is taken; using ${port}.`)
    taken.push(port)
    return port
  }
  return {
    api: await pick('the API', Number(env.BULLPEN_API_PORT || 8080)),
    apiMetrics: await pick("the API's metrics", Number(env.BULLPEN_API_METRICS_PORT || 9464)),
    workers: [await pick('worker-1', 9465), await pick('worker-2', 9466)],
    ...(observe && { prometheus: await pick('Prometheus', 9090) }),
  }
}

/**
 * Returns the key that the API accepts on loopback. The key is stored, so that links and commands printed earlier continue to
 * work.
 */
function developmentKey(home) {
  const file = join(home, 'dev-key')
  if (!existsSync(file)) writeFileSync(file, `bp_dev_${randomBytes(16).toString('hex')}\n`, { mode: 0o600 })
  return readFileSync(file, 'utf8').trim()
}

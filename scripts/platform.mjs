// Brings the platform up on this machine, and down again: Redis, a receipts endpoint, the API, two workers.
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { keepRedis } from './keep-redis.mjs'
import { worthShowing } from './log-line.mjs'
import { removePlatform, runningPlatform, writePlatform } from './platform-file.mjs'
import { freePort, nextFreePort } from './ports.mjs'
import { startReceipts } from './receipts.mjs'
import { resolveRedis } from './redis.mjs'
import { runningServer } from './redis-server.mjs'
import { supervise } from './supervise.mjs'
import { UserError } from './user-error.mjs'

const HOST = '127.0.0.1'
const READY_WITHIN = 30_000 // ms
const TAIL = 30 // lines of a log that are shown when its process does not get ready

export const root = resolve(import.meta.dirname, '..')

const STOPPED = 'stopped before it was ready'

/**
 * @typedef {object} Options
 * @property {string} home where data, key, logs and the note are kept
 * @property {string[]} filesRoots what the workers may read
 * @property {boolean} [fresh] forget all data first
 * @property {boolean} [anyPorts] take any free ports instead of the well-known ones
 * @property {string} [namespace] of its keys in Redis; with one of its own it shares a server with others, not tasks
 * @property {NodeJS.ProcessEnv} [env] of the children
 * @property {(line: string) => void} say
 */

/**
 * A platform that is not up yet. `down` may be called at any time, also in the middle of `up`.
 * @param {Options} options
 */
export function createPlatform({
  home,
  filesRoots,
  namespace,
  fresh = false,
  anyPorts = false,
  env = process.env,
  say,
}) {
  const closers = new AsyncDisposableStack() // in the reverse of the order in which things were opened
  /** @type {Map<string, ReturnType<typeof supervise>>} */
  const children = new Map()
  /** @type {Map<string, string>} */
  const urls = new Map()
  let rising
  let stopping
  let note

  async function rise() {
    const other = await runningPlatform(home)
    if (other !== undefined) throw new UserError(`a platform runs here already, at ${other.apiUrl}`)
    const dataDir = join(home, 'redis')
    if (fresh) await forget(dataDir)
    mkdirSync(join(home, 'logs'), { recursive: true })

    const redis = await resolveRedis({ env, dataDir, say })
    const kept = keepRedis(redis, say)
    closers.defer(() => kept.stop())
    if (stopping) throw new UserError(STOPPED)
    const ports = await pickPorts({ env, anyPorts, say })
    const receipts = await startReceipts({ port: 0, host: HOST })
    closers.defer(receipts.stop)

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
    note = { pid: process.pid, apiUrl: api.url, key, redisUrl: redis.url, filesRoots, workers: [] }

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
        BULLPEN_WORKER_RECEIPT_ENDPOINT: receipts.url,
      })
    }
    for (const { name, url } of [api, ...workers]) urls.set(name, url)
    await Promise.all([...urls].map(([name, url]) => untilReady(name, url)))
    note.workers = workers.map(({ name, url }) => ({ name, pid: children.get(name).pid, url }))
    writePlatform(home, note)
    closers.defer(() => removePlatform(home))
    return { ...note, api, redis }
  }

  function launch(name, main, childEnv) {
    const child = supervise({
      name,
      command: process.execPath,
      args: ['--import', join(root, 'scripts/leash.mjs'), main],
      cwd: root,
      env: childEnv,
      logFile: logOf(name),
      say,
      onLine(line, stream) {
        const shown = worthShowing(line, stream)
        if (shown !== undefined) say(`${name}  ${shown}`)
      },
      onStart(pid) {
        const worker = note.workers.find((one) => one.name === name)
        if (worker === undefined) return
        worker.pid = pid
        writePlatform(home, note)
      },
      onDeath: () => note.workers.length > 0, // before everything was ready once, a death is a failed start
    })
    children.set(name, child)
  }

  const logOf = (name) => join(home, 'logs', `${name}.log`)

  async function untilReady(name, url) {
    const deadline = performance.now() + READY_WITHIN
    while (!stopping && children.get(name).running() && performance.now() < deadline) {
      const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(2000) }).catch(() => undefined)
      if (response?.ok) return
      await sleep(50)
    }
    if (stopping) throw new UserError(STOPPED)
    const why = children.get(name).running()
      ? `was not ready within ${READY_WITHIN / 1000} s`
      : 'ended before it was ready'
    throw new UserError(`${name} ${why}. The end of ${logOf(name)}:\n${tail(logOf(name))}`)
  }

  return {
    up() {
      rising = rise()
      return rising
    },
    /** The supervised processes by name: api, worker-1, worker-2. */
    children,
    /** Drains one process, starts it again with the code as it is now, and waits until it is ready. */
    async restart(name) {
      await children.get(name).restart()
      await untilReady(name, urls.get(name))
    },
    /** Drains the workers and the API, then ends the rest. How long a drain may take is decided by the worker. */
    down() {
      // What is being opened right now has to be open before it can be closed.
      stopping ??= Promise.allSettled([rising]).then(() => closers.disposeAsync())
      return stopping
    },
    /** Ends the workers and the API at once. Redis is spared: it needs a few milliseconds to write what it holds. */
    kill() {
      for (const child of children.values()) child.kill()
    },
    get stopping() {
      return stopping !== undefined
    },
  }
}

const tail = (file) =>
  existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n').slice(-TAIL).join('\n') : ''

async function forget(dataDir) {
  const server = await runningServer(dataDir)
  if (server !== undefined) {
    throw new UserError(`Redis (process ${server.pid}) runs on ${dataDir}: end it before its data is removed`)
  }
  rmSync(dataDir, { recursive: true, force: true })
}

async function pickPorts({ env, anyPorts, say }) {
  if (anyPorts) {
    const [api, apiMetrics, ...workers] = await Promise.all(Array.from({ length: 4 }, () => freePort()))
    return { api, apiMetrics, workers }
  }
  const taken = []
  const pick = async (what, wanted) => {
    if (!Number.isInteger(wanted) || wanted < 0 || wanted > 65_535)
      throw new UserError(`the port for ${what} is no port`)
    const port = await nextFreePort(wanted, { host: HOST, taken })
    if (port !== wanted) say(`Port ${wanted} for ${what} is taken: using ${port}.`)
    taken.push(port)
    return port
  }
  return {
    api: await pick('the API', Number(env.BULLPEN_API_PORT || 8080)),
    apiMetrics: await pick("the API's metrics", Number(env.BULLPEN_API_METRICS_PORT || 9464)),
    workers: [await pick('worker-1', 9465), await pick('worker-2', 9466)],
  }
}

/** The key that the API accepts on loopback: made once, so that links and curl lines keep working. */
function developmentKey(home) {
  const file = join(home, 'dev-key')
  if (!existsSync(file)) writeFileSync(file, `bp_dev_${randomBytes(16).toString('hex')}\n`, { mode: 0o600 })
  return readFileSync(file, 'utf8').trim()
}

// Starts a private Redis (or Valkey) server with its own port on loopback, its own directory, and the settings that Bullpen
// needs.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../system/ports.mjs'
import { findProgram } from '../system/programs.mjs'
import { UserError } from '../system/user-error.mjs'
import { askRedis, pingRedis } from './probe.mjs'

/** The settings for every Redis that these scripts start, as a process or in a container. */
export const SETTINGS = Object.freeze({
  appendonly: 'yes', // so that tasks survive a restart
  appendfsync: 'everysec', // after a crash of the machine, only the last second is lost
  save: '', // no snapshots: the append-only file holds everything
  'maxmemory-policy': 'noeviction', // an evicted key is a lost task
  'hash-max-listpack-value': '1024', // keeps a task's envelope in the compact encoding
})

/** Returns the settings as command-line arguments. */
export const settingsAsArguments = (settings = SETTINGS) =>
  Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])

/** Returns the path of `redis-server` or `valkey-server` on PATH, or undefined. */
export const findServerBinary = (env = process.env) =>
  findProgram('redis-server', env) ?? findProgram('valkey-server', env)

/**
 * The argument for servers that tests and drills kill. With `no`, Redis writes to its file before it replies, and the operating system
 * decides when the data reaches the disk. A crash of Redis alone does not lose this data. With `everysec`, Redis may reply up to 2 s before
 * it writes to its file if the disk is busy, and a crash would lose the data. With `always`, Redis does not reply while the disk is busy.
 */
export const WRITES_BEFORE_IT_REPLIES = Object.freeze(['--appendfsync', 'no'])

const START_TIMEOUT = 60_000 // in ms, because loading a large append-only file takes time
const STOP_TIMEOUT = 20_000 // in ms, from SIGTERM to SIGKILL

const isAlive = (pid) => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/**
 * Returns the file that records which process serves a directory, so that a server that has outlived its owner can be found
 * again.
 */
const recordFile = (dir) => join(dir, 'server.json')

function readRecord(dir) {
  try {
    return JSON.parse(readFileSync(recordFile(dir), 'utf8'))
  } catch {
    return undefined
  }
}

/** Returns the record of the server that is running on `dir`, or undefined if there is none. */
export async function runningServer(dir) {
  const record = readRecord(dir)
  return record !== undefined && (await answersAs(record.pid, record.port)) ? record : undefined
}

/**
 * Returns whether the server on `port` is process `pid`. Process ids and ports are reused, so neither is sufficient proof on its
 * own.
 */
async function answersAs(pid, port) {
  const info = await askRedis(`redis://127.0.0.1:${port}`, ['INFO', 'server']).catch(() => '')
  return info.includes(`process_id:${pid}\r\n`)
}

const logTail = (dir, lines = 12) => {
  const file = join(dir, 'redis.log')
  return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n').slice(-lines).join('\n') : ''
}

/** Creates the handle of a running server. `exited` resolves when the process is gone. */
function handle({ dir, port, pid, exited, reused }) {
  const url = `redis://127.0.0.1:${port}`
  const forget = () => readRecord(dir)?.pid === pid && rmSync(recordFile(dir), { force: true })
  return {
    url,
    port,
    pid,
    reused,
    exited,
    /** Sends a signal without waiting. To be sure that the process is gone, await `exited`. */
    kill: (signal = 'SIGKILL') => isAlive(pid) && process.kill(pid, signal),
    /** Stops the server with SIGTERM, so that it writes its data before it exits. */
    async stop() {
      if (isAlive(pid)) process.kill(pid, 'SIGTERM')
      const killer = setTimeout(() => isAlive(pid) && process.kill(pid, 'SIGKILL'), STOP_TIMEOUT)
      await exited()
      clearTimeout(killer)
      forget()
    },
  }
}

/** Waits for the exit of a server that is not our child, by checking whether its port still responds. */
async function untilPortCloses(port, pid) {
  while (isAlive(pid) && (await pingRedis(`redis://127.0.0.1:${port}`, { within: 0 })).ok) await sleep(20)
}

/**
 * Starts a server on `dir`, which is created if missing, and waits until the server responds. A server that outlived its owner is
 * taken over. Throws if another live process owns a server on `dir`.
 * @param {{ dir: string, port?: number, args?: readonly string[], binary?: string }} options
 *   `args` come last on the command line and so override the settings: `['--maxmemory', '64mb']`
 */
export async function startRedisServer({ dir, port, args = [], binary = findServerBinary() }) {
  if (binary === undefined) throw new UserError('neither redis-server nor valkey-server is on PATH')
  mkdirSync(dir, { recursive: true })
  const home = realpathSync(dir)
  const running = await runningServer(home)
  if (running !== undefined) {
    if (running.owner !== process.pid && isAlive(running.owner)) {
      throw new UserError(
        `Redis (process ${running.pid}) serves ${home} for process ${running.owner}, which is still running`,
      )
    }
    const server = handle({
      dir: home,
      port: running.port,
      pid: running.pid,
      exited: () => untilPortCloses(running.port, running.pid),
      reused: true,
    })
    if (port === undefined || port === running.port) {
      writeFileSync(recordFile(home), JSON.stringify({ ...running, owner: process.pid }))
      return server
    }
    await server.stop()
  }
  return launch({ home, port: port ?? (await freePort()), args, binary })
}

async function launch({ home, port, args, binary }) {
  rmSync(join(home, 'redis.log'), { force: true })
  const fixed = { port: String(port), bind: '127.0.0.1', dir: home, daemonize: 'no', logfile: join(home, 'redis.log') }
  // Redis gets its own process group, because Ctrl-C must not stop it before the workers have drained.
  const child = spawn(binary, [...settingsAsArguments({ ...fixed, ...SETTINGS }), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  let output = '' // printed before the log file is open, for example about an unknown setting
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk) => {
      output += chunk
    })
    stream.unref()
  }
  child.unref() // exited() holds the process while it waits
  let ended
  const exit = new Promise((resolve) => {
    child.once('error', (error) => {
      ended = error.message
      resolve()
    })
    child.once('exit', (code, signal) => {
      ended = signal === null ? `it exited with code ${code}` : `${signal} ended it`
      resolve()
    })
  })
  const exited = async () => {
    if (ended === undefined) child.ref()
    await exit
  }
  const deadline = performance.now() + START_TIMEOUT
  while (ended === undefined && performance.now() < deadline && !(await answersAs(child.pid, port))) await sleep(10)
  // The server replies to INFO even while the append-only file is loading, whereas +PONG means that it is ready.
  const answer = await pingRedis(`redis://127.0.0.1:${port}`, {
    within: Math.max(0, deadline - performance.now()),
    giveUp: () => ended !== undefined,
  })
  if (ended !== undefined || !answer.ok) {
    child.kill('SIGKILL')
    const tail = [output.trim(), logTail(home)].filter(Boolean).join('\n')
    throw new UserError(`${binary} did not start on port ${port}: ${ended ?? answer.reason}\n${tail}`.trimEnd())
  }
  writeFileSync(recordFile(home), JSON.stringify({ pid: child.pid, port, owner: process.pid }))
  return handle({ dir: home, port, pid: child.pid, exited, reused: false })
}

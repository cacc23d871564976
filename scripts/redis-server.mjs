// Starts a private Redis (or Valkey) server: its own port on loopback, its own directory, the settings Bullpen needs.
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from './ports.mjs'
import { findProgram } from './programs.mjs'
import { askRedis, pingRedis } from './redis-probe.mjs'
import { UserError } from './user-error.mjs'

/** What every Redis that we start is told, on every road. */
export const SETTINGS = Object.freeze({
  appendonly: 'yes', // finished work survives a restart
  appendfsync: 'everysec', // and a crash, but for the last second
  save: '', // the append-only file is the one copy
  'maxmemory-policy': 'noeviction', // an evicted key is a lost task
  'hash-max-listpack-value': '1024', // a task's envelope still fits the compact encoding
})

/** The settings as arguments for a server's command line. */
export const settingsAsArguments = (settings = SETTINGS) =>
  Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])

/** `redis-server` or `valkey-server` on PATH, or undefined. */
export const findServerBinary = (env = process.env) =>
  findProgram('redis-server', env) ?? findProgram('valkey-server', env)

const START_DEADLINE = 20_000 // ms: a large append-only file takes its time to load
const STOP_DEADLINE = 20_000 // ms: then it has not ended on SIGTERM, and is killed

const isAlive = (pid) => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** Who serves a directory: written beside the data, so that a server that outlived its owner is found again. */
const noteOf = (dir) => join(dir, 'server.json')

function readNote(dir) {
  try {
    return JSON.parse(readFileSync(noteOf(dir), 'utf8'))
  } catch {
    return undefined
  }
}

/** The note of the server that still runs on `dir`, whoever started it; undefined when none does. */
export async function runningServer(dir) {
  const note = readNote(dir)
  return note !== undefined && (await answersAs(note.pid, note.port)) ? note : undefined
}

/** A process id may belong to somebody else by now, and so may a port: the server on that port has to claim the id. */
async function answersAs(pid, port) {
  const info = await askRedis(`redis://127.0.0.1:${port}`, ['INFO', 'server']).catch(() => '')
  return info.includes(`process_id:${pid}\r\n`)
}

const logTail = (dir, lines = 12) => {
  const file = join(dir, 'redis.log')
  return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n').slice(-lines).join('\n') : ''
}

/** A server that runs, as its users see it. `exited` settles when the process is gone. */
function handle({ dir, port, pid, exited, reused }) {
  const url = `redis://127.0.0.1:${port}`
  const forget = () => readNote(dir)?.pid === pid && rmSync(noteOf(dir), { force: true })
  return {
    url,
    port,
    pid,
    reused,
    exited,
    /** Sends a signal at once and waits for nothing; await `exited` after SIGKILL. */
    kill: (signal = 'SIGKILL') => isAlive(pid) && process.kill(pid, signal),
    /** Ends the server the orderly way: on SIGTERM it writes what it has, then exits. */
    async stop() {
      if (isAlive(pid)) process.kill(pid, 'SIGTERM')
      const killer = setTimeout(() => isAlive(pid) && process.kill(pid, 'SIGKILL'), STOP_DEADLINE)
      await exited()
      clearTimeout(killer)
      forget()
    },
  }
}

/** A process that is not our child: gone when nobody listens on its port any more. */
async function untilPortCloses(port, pid) {
  while (isAlive(pid) && (await pingRedis(`redis://127.0.0.1:${port}`, { within: 0 })).ok) await sleep(20)
}

/**
 * Starts a server on `dir` (made when missing) and waits until it answers. A server that outlived its owner is taken
 * over; one whose owner lives is an error.
 * @param {{ dir: string, port?: number, args?: readonly string[], binary?: string }} options
 *   `args` are appended to the command line, so they win: `['--maxmemory', '64mb']`
 */
export async function startRedisServer({ dir, port, args = [], binary = findServerBinary() }) {
  if (binary === undefined) throw new UserError('neither redis-server nor valkey-server is on PATH')
  mkdirSync(dir, { recursive: true })
  const home = realpathSync(dir)
  const left = await runningServer(home)
  if (left !== undefined) {
    if (left.owner !== process.pid && isAlive(left.owner)) {
      throw new UserError(`Redis (process ${left.pid}) serves ${home} for process ${left.owner}, which still runs`)
    }
    const server = handle({
      dir: home,
      port: left.port,
      pid: left.pid,
      exited: () => untilPortCloses(left.port, left.pid),
      reused: true,
    })
    if (port === undefined || port === left.port) {
      writeFileSync(noteOf(home), JSON.stringify({ ...left, owner: process.pid }))
      return server
    }
    await server.stop()
  }
  return launch({ home, port: port ?? (await freePort()), args, binary })
}

async function launch({ home, port, args, binary }) {
  rmSync(join(home, 'redis.log'), { force: true })
  const fixed = { port: String(port), bind: '127.0.0.1', dir: home, daemonize: 'no', logfile: join(home, 'redis.log') }
  // A process group of its own: Ctrl-C on the terminal must not end Redis before the workers have drained.
  const child = spawn(binary, [...settingsAsArguments({ ...fixed, ...SETTINGS }), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  let complaint = '' // what it says before its log file is open, e.g. a setting that it does not know
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk) => {
      complaint += chunk
    })
    stream.unref()
  }
  child.unref() // whoever wants to wait for it awaits exited()
  let ended
  const exit = new Promise((resolve) => {
    child.once('error', (error) => {
      ended = error.message
      resolve()
    })
    child.once('exit', (code, signal) => {
      ended = signal === null ? `it exited with ${code}` : `it was ended by ${signal}`
      resolve()
    })
  })
  const exited = async () => {
    if (ended === undefined) child.ref()
    await exit
  }
  const deadline = performance.now() + START_DEADLINE
  while (ended === undefined && performance.now() < deadline && !(await answersAs(child.pid, port))) await sleep(10)
  // INFO is answered while the append-only file is still being loaded; +PONG means that it is ready.
  const answer = await pingRedis(`redis://127.0.0.1:${port}`, {
    within: Math.max(0, deadline - performance.now()),
    giveUp: () => ended !== undefined,
  })
  if (ended !== undefined || !answer.ok) {
    child.kill('SIGKILL')
    const tail = [complaint.trim(), logTail(home)].filter(Boolean).join('\n')
    throw new UserError(`${binary} did not start on port ${port}: ${ended ?? answer.reason}\n${tail}`.trimEnd())
  }
  writeFileSync(noteOf(home), JSON.stringify({ pid: child.pid, port, owner: process.pid }))
  return handle({ dir: home, port, pid: child.pid, exited, reused: false })
}

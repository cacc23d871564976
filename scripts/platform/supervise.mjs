// Supervises one child process: writes the child's output to a log file and restarts the child if it exits unexpectedly.
import { spawn } from 'node:child_process'
import { chmodSync, closeSync, createWriteStream, openSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

const FIRST_DELAY = 500 // ms
const LONGEST_DELAY = 10_000 // ms
const HEALTHY_AFTER = 30_000 // in ms; if a process has run this long, its next restart is after the first delay again
const LAST_OUTPUT = 1000 // ms
const OWNER_ONLY = 0o600 // inputs and results may be logged

/** Returns the delay before restart number `restarts` (from 0), in ms. */
export const restartDelay = (restarts) => Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** restarts)

/**
 * @typedef {object} Options
 * @property {string} name
 * @property {string} command
 * @property {readonly string[]} args
 * @property {NodeJS.ProcessEnv} env
 * @property {string} cwd
 * @property {string} logFile appended to; readable by its owner only
 * @property {(line: string, stream: 'stdout' | 'stderr') => void} [onLine]
 * @property {(pid: number) => void} [onStart]
 * @property {(how: string) => boolean} [onDeath] called after an unexpected exit; returns false if the process must not be
 * restarted
 * @property {(line: string) => void} say
 */

/** @param {Options} options */
export function supervise({ name, command, args, env, cwd, logFile, onLine, onStart, onDeath = () => true, say }) {
  const log = openLog(logFile)
  let child
  let exited = Promise.resolve()
  let closed = Promise.resolve()
  let stopped = false
  let expectsExit = false
  let restarts = 0
  let timer

  function launch() {
    const launchedAt = performance.now()
    expectsExit = false
    // The child gets its own process group, so that Ctrl-C reaches only the supervisor, which stops its children in order. If the
    // supervisor is killed, the ipc channel closes and exit-with-parent.mjs ends the child.
    child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'], detached: true })
    for (const stream of ['stdout', 'stderr']) {
      child[stream].pipe(log, { end: false })
      createInterface({ input: child[stream] }).on('line', (line) => onLine?.(line, stream))
    }
    closed = new Promise((resolve) => child.once('close', resolve))
    exited = new Promise((resolve) => {
      let settled = false
      const settle = (how) => {
        if (settled) return
        settled = true
        if (!expectsExit) died(how, performance.now() - launchedAt)
        resolve()
      }
      child.once('error', (error) => settle(`could not be started: ${error.message}`))
      child.once('exit', (code, signal) =>
        settle(signal === null ? `exited with code ${code}` : `was killed by ${signal}`),
      )
    })
    if (child.pid !== undefined) onStart?.(child.pid)
  }

  function died(how, aliveMs) {
    if (stopped || !onDeath(how)) return
    if (aliveMs > HEALTHY_AFTER) restarts = 0
    const delay = restartDelay(restarts++)
    say(`${name} ${how}; restarting it in ${delay / 1000} s`)
    timer = setTimeout(launch, delay)
  }

  const running = () => child?.exitCode === null && child.signalCode === null

  /** Sends SIGTERM and waits for the exit. The child limits its own drain. */
  async function end() {
    expectsExit = true
    clearTimeout(timer)
    if (running()) child.kill('SIGTERM')
    await exited
  }

  launch()
  return {
    name,
    get pid() {
      return child.pid
    },
    running,
    /** Resolves when the last lines of an exited process have been read, or after 1 s if a descendant keeps its pipes open. */
    outputRead: () => Promise.race([closed, sleep(LAST_OUTPUT, undefined, { ref: false })]),
    /** Drains the process and starts it again. `beforeLaunch` runs in between. */
    async restart(beforeLaunch) {
      await end()
      if (stopped) return
      beforeLaunch?.()
      launch()
    },
    async stop() {
      stopped = true
      await end()
      log.end()
    },
    kill() {
      stopped = true
      if (running()) child.kill('SIGKILL')
    },
  }
}

function openLog(file) {
  closeSync(openSync(file, 'a', OWNER_ONLY))
  chmodSync(file, OWNER_ONLY) // earlier versions created this file readable by others
  return createWriteStream(file, { flags: 'a', mode: OWNER_ONLY })
}

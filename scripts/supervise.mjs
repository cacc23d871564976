// Keeps one child process running: its output goes to a log file, and when it dies unasked, it is started again.
import { spawn } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { createInterface } from 'node:readline'

const FIRST_DELAY = 500 // ms
const LONGEST_DELAY = 10_000 // ms
const HEALTHY_AFTER = 30_000 // ms of life, after which the next death starts again at the first delay

/** How long to wait before restart number `restarts` (from 0), in ms. */
export const restartDelay = (restarts) => Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** restarts)

/**
 * @typedef {object} Options
 * @property {string} name
 * @property {string} command
 * @property {readonly string[]} args
 * @property {NodeJS.ProcessEnv} env
 * @property {string} cwd
 * @property {string} logFile appended to
 * @property {(line: string, stream: 'stdout' | 'stderr') => void} [onLine]
 * @property {(pid: number) => void} [onStart]
 * @property {(how: string) => boolean} [onDeath] called when it died unasked; false means: leave it dead
 * @property {(line: string) => void} say
 */

/** @param {Options} options */
export function supervise({ name, command, args, env, cwd, logFile, onLine, onStart, onDeath = () => true, say }) {
  const log = createWriteStream(logFile, { flags: 'a' })
  let child
  let exited = Promise.resolve()
  let wanted = true
  let expected = false // is the next exit one that was asked for?
  let restarts = 0
  let timer

  function launch() {
    const begun = performance.now()
    expected = false
    // A process group of its own: Ctrl-C on the terminal reaches the supervisor alone, which ends things in order. The
    // ipc channel is the leash: it breaks when the supervisor is killed, and the child then ends by itself.
    child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'], detached: true })
    for (const stream of ['stdout', 'stderr']) {
      child[stream].pipe(log, { end: false })
      createInterface({ input: child[stream] }).on('line', (line) => onLine?.(line, stream))
    }
    exited = new Promise((resolve) => {
      let settled = false
      const settle = (how) => {
        if (settled) return
        settled = true
        if (!expected) died(how, performance.now() - begun)
        resolve()
      }
      child.once('error', (error) => settle(error.message))
      child.once('exit', (code, signal) => settle(signal === null ? `exited with ${code}` : `was ended by ${signal}`))
    })
    if (child.pid !== undefined) onStart?.(child.pid)
  }

  function died(how, lived) {
    if (!wanted || !onDeath(how)) return
    if (lived > HEALTHY_AFTER) restarts = 0
    const delay = restartDelay(restarts++)
    say(`${name} ${how}; starting it again in ${delay / 1000} s`)
    timer = setTimeout(launch, delay)
  }

  const running = () => child?.exitCode === null && child.signalCode === null

  /** SIGTERM, and until it has ended by itself: how long that may take is the child's own decision. */
  async function end() {
    expected = true
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
    /** Drains it and starts it again. */
    async restart() {
      await end()
      if (wanted) launch()
    },
    async stop() {
      wanted = false
      await end()
      log.end()
    },
    kill() {
      wanted = false
      if (running()) child.kill('SIGKILL')
    },
  }
}

// Runs a program for a limited time, and ends the program together with all processes that it has started.
import { spawn } from 'node:child_process'

/** How long a program may take to end after SIGTERM, in ms. */
const GRACE_MS = 10_000

/**
 * Runs a program in its own process group. When the time is up or `signal` aborts, the group is ended with SIGTERM, and 10 s
 * later with SIGKILL. Never throws. If the program cannot be started, the code is 127 and `stderr` contains the reason.
 * @param {string} command
 * @param {readonly string[]} args
 * @param {{ timeoutMs: number, signal?: AbortSignal, cwd?: string, env?: NodeJS.ProcessEnv }} options
 * @returns {Promise<{ code: number, stdout: string, stderr: string, timedOut: boolean }>}
 */
export function runBounded(command, args, { timeoutMs, signal, cwd, env }) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true, cwd, env })
    const text = { stdout: '', stderr: '' }
    for (const stream of ['stdout', 'stderr']) {
      child[stream].setEncoding('utf8').on('data', (chunk) => {
        text[stream] += chunk
      })
    }
    let timedOut = false
    let killer
    const kill = (name) => {
      try {
        process.kill(-child.pid, name)
      } catch {
        // the group has ended
      }
    }
    const end = () => {
      if (child.pid === undefined || killer !== undefined) return
      kill('SIGTERM')
      killer = setTimeout(() => kill('SIGKILL'), GRACE_MS)
    }
    const timer = setTimeout(() => {
      timedOut = true
      end()
    }, timeoutMs)
    const settle = (result) => {
      clearTimeout(timer)
      clearTimeout(killer)
      signal?.removeEventListener('abort', end)
      resolve({ ...result, timedOut })
    }
    signal?.addEventListener('abort', end)
    if (signal?.aborted) end()
    child.once('error', (error) => settle({ code: 127, stdout: '', stderr: error.message }))
    child.once('close', (code) => settle({ code: code ?? 1, ...text }))
  })
}

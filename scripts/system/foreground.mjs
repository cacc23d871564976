// Runs a program in the foreground, where it shares this process's terminal, receives its signals and determines its exit code.
import { spawn } from 'node:child_process'
import { constants } from 'node:os'

/**
 * Resolves with the exit code, or with 128 + n when signal n ended the program. Must run on Node 18.
 * @param {string} command
 * @param {readonly string[]} args
 * @param {import('node:child_process').SpawnOptions} [options]
 * @returns {Promise<number>}
 */
export function foreground(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'inherit', ...options })
    const pass = (signal) => child.kill(signal)
    // The terminal sends Ctrl-C to the child as well, so passing it on would look like a second Ctrl-C, which skips the drain.
    const interrupt = () => process.stdin.isTTY || child.kill('SIGINT')
    process.on('SIGINT', interrupt).on('SIGTERM', pass).on('SIGHUP', pass)
    const end = (settle) => {
      process.off('SIGINT', interrupt).off('SIGTERM', pass).off('SIGHUP', pass)
      settle()
    }
    child.once('error', (error) => end(() => reject(error)))
    child.once('exit', (code, signal) => end(() => resolve(code ?? 128 + (constants.signals[signal] ?? 0))))
  })
}

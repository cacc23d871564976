// Runs a program in the foreground, as if it were this process: same terminal, same signals, same exit code.
import { spawn } from 'node:child_process'
import { constants } from 'node:os'

/**
 * Resolves with the exit code; 128 + n when the program was ended by signal n. Runs on Node 18.
 * @param {string} command
 * @param {readonly string[]} args
 * @param {import('node:child_process').SpawnOptions} [options]
 * @returns {Promise<number>}
 */
export function foreground(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'inherit', ...options })
    const pass = (signal) => child.kill(signal)
    // Ctrl-C on a terminal reaches the child by itself; a second SIGINT would mean "now" to it.
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

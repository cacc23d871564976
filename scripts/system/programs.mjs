// Finds programs on PATH and runs them.
import { spawn } from 'node:child_process'
import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/**
 * Returns the full path of a program on PATH, or undefined if there is none.
 * @param {string} name
 * @param {NodeJS.ProcessEnv} [env]
 */
export function findProgram(name, env = process.env) {
  for (const dir of (env.PATH ?? '').split(delimiter)) {
    if (dir === '') continue
    const path = join(dir, name)
    try {
      accessSync(path, constants.X_OK)
      if (statSync(path).isFile()) return path
    } catch {
      // not in this directory
    }
  }
  return undefined
}

/**
 * Runs a program and waits for it to exit. Never throws. If the program cannot be started, the code is 127 and `stderr` contains
 * the reason. With `stdio: 'inherit'`, both texts are empty. `timeout` is in ms.
 * @param {string} command
 * @param {readonly string[]} args
 * @param {import('node:child_process').SpawnOptions} [options]
 * @returns {Promise<{ code: number, stdout: string, stderr: string }>}
 */
export function run(command, args, options = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options })
    const text = { stdout: '', stderr: '' }
    for (const stream of ['stdout', 'stderr']) {
      child[stream]?.setEncoding('utf8').on('data', (chunk) => {
        text[stream] += chunk
      })
    }
    child.once('error', (error) => resolve({ code: 127, stdout: '', stderr: error.message }))
    child.once('close', (code) => resolve({ code: code ?? 1, ...text }))
  })
}

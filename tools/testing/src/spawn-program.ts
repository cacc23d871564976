// Runs a program of this repository in a process of its own, which ends with the test.
import { spawn } from 'node:child_process'
import { onTestFinished } from 'vitest'
import { programEnv } from './program-env.ts'

/** Starts Node with the file. The process has the environment of `programEnv(env)`. */
export function spawnProgram(file: string, args: readonly string[] = [], env: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, [file, ...args], { env: programEnv(env) })
  let output = ''
  child.stdout.on('data', (chunk) => (output += chunk))
  child.stderr.on('data', (chunk) => (output += chunk))
  const exited = new Promise<number | null>((resolve) => child.on('exit', (code) => resolve(code)))
  onTestFinished(() => void child.kill('SIGKILL'))
  return {
    child,
    /** Resolves with the exit code, or with null if a signal has ended the process. */
    exited,
    /** Returns everything that the process has written so far. */
    output: () => output,
  }
}

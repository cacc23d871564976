// Starts Chromium for a test, and ends it with the test.
import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** The program, or undefined if none is installed. */
export const chromium = ['chromium', 'chromium-browser', 'google-chrome'].find(
  (name) => spawnSync(name, ['--version']).status === 0,
)

const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run']

/** Starts Chromium with a profile of its own. `args` are further flags and the address of the page. */
export function startChromium(program: string, args: readonly string[], stdio: SpawnOptions['stdio']): ChildProcess {
  const profile = mkdtempSync(join(tmpdir(), 'bullpen-chromium-'))
  const child = spawn(program, [...FLAGS, `--user-data-dir=${profile}`, ...args], { detached: true, stdio })
  onTestFinished(() => endGroup(child, profile))
  return child
}

/** Chromium has several processes, which share the group of the first one. */
async function endGroup(child: ChildProcess, profile: string): Promise<void> {
  if (child.pid !== undefined && child.exitCode === null) {
    const exit = once(child, 'exit')
    process.kill(-child.pid, 'SIGKILL')
    await exit
  }
  rmSync(profile, { recursive: true, force: true, maxRetries: 10 })
}

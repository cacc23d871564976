// The amounts that tests find, by running one of them in a run of its own.
import { join } from 'node:path'
import { expect, inject, it } from 'vitest'
import { run } from './programs.mjs'

const root = join(import.meta.dirname, '..')

it.each([
  ['small', []],
  ['full', ['--full']],
])('runs tests at %s scale with %j', async (scale, args) => {
  const env = { ...process.env, NO_COLOR: '1', REDIS_URL: inject('redisUrl') }
  const only = ['--reporter=verbose', 'tools/testing/src/scale.test.ts']
  const { code, stdout } = await run(process.execPath, ['scripts/test.mjs', ...args, ...only], { cwd: root, env })
  expect(stdout).toContain(`gives the amount of a ${scale} run`)
  expect(code).toBe(0)
})

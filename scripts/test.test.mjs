// The scale that tests see, by running one of them as a separate run.
import { join } from 'node:path'
import { expect, inject, it } from 'vitest'
import { run } from './system/programs.mjs'

const root = join(import.meta.dirname, '..')

it.each([
  ['small', []],
  ['full', ['--full']],
])('tests run at %s scale with the arguments %j', async (scale, args) => {
  const env = { ...process.env, NO_COLOR: '1', REDIS_URL: inject('redisUrl') }
  const only = ['--reporter=verbose', 'tools/testing/src/scale.test.ts']
  const { code, stdout } = await run(process.execPath, ['scripts/test.mjs', ...args, ...only], { cwd: root, env })
  expect(stdout).toContain(`a ${scale} run has its own amount`)
  expect(code).toBe(0)
})

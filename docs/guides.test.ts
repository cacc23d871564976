// The guides quote programs that tests run, word for word.
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'

const QUOTES = [
  ['own-worker.md', '../packages/bullmq/src/examples/own-worker.fixture.ts'],
  ['nestjs.md', '../packages/bullmq/src/examples/nest.fixture.ts'],
] as const

const read = (file: string): string => readFileSync(new URL(file, import.meta.url), 'utf8')

it.each(QUOTES)('docs/%s quotes %s as it is', (guide, program) => {
  const [, first] = /```ts\n([\s\S]*?)```/.exec(read(guide)) ?? []
  const [, text] = /^\/\/ .*\n([\s\S]*)$/.exec(read(program)) ?? []
  expect(first).toBe(text)
})

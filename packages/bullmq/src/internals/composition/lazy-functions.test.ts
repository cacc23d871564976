// BullMQ's seldom called functions: which scripts create them only when they are called, and what the rearrangement relies on.
import { TaskError } from '@bullpen/contract'

import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { long, setup } from '../../setup.fixture.ts'
import { bullmqScripts, COMPOSED, type ComposedScript } from './composed-scripts.ts'
import { withLazyFunctions } from './lazy-functions.ts'

const scripts = bullmqScripts().filter(({ name }) => COMPOSED.has(name))
const rearranged = scripts.filter((script) => withLazyFunctions(script).includes('call_seldom'))

/** The names of the functions that the rearranged text creates when one of them is called. */
const seldomIn = (text: string): string[] =>
  [...(/^return \{ (.*) \}$/m.exec(text)?.[1] ?? '').matchAll(/(\w+) = \w+/g)].map(([, name = '']) => name)

it('the scripts that add, fetch and end tasks create most functions only when they are called', () => {
  const names = rearranged.map(({ name }) => name)
  expect(names).toEqual(
    expect.arrayContaining(['addStandardJob', 'addDelayedJob', 'addPrioritizedJob', 'moveToDelayed', 'moveToFinished']),
  )
})

it.each(rearranged.map((script) => [script.name, script] as const))(
  'each function of %s is in the text once, and is only called',
  (_, script) => {
    const text = withLazyFunctions(script)
    const code = script.content.replaceAll(/--\[\[[\s\S]*?\]\]/g, '').replaceAll(/--.*$/gm, '')
    const functions = [...code.matchAll(/^local (?:function (\w+)|(\w+)\s*=\s*function)/gm)].map(([, a, b]) => a ?? b)
    for (const name of functions) {
      expect(text.match(new RegExp(`\\blocal (?:function ${name}|${name}\\s*=\\s*function)\\b`, 'g'))).toHaveLength(1)
    }
    const outside = text.replace(/^function create_seldom\(\)[\s\S]*?^return \{.*\}\nend$/m, '')
    for (const name of seldomIn(text)) {
      // What is left is a field, a string or the call itself.
      expect(outside).not.toMatch(new RegExp(`(?<!['".\\w])${name}\\b(?!\\s*=)`))
    }
  },
)

/** Makes every composed script fail if it creates its seldom called functions. */
function forbidLateFunctions(): void {
  const composed = COMPOSED as Map<string, ComposedScript>
  const before = new Map(composed)
  onTestFinished(() => {
    for (const [name, script] of before) composed.set(name, script)
  })
  for (const [name, script] of before) {
    const lua = script.lua.replace('seldom = seldom or create_seldom()', `error('created: ' .. name)`)
    composed.set(name, { ...script, lua })
  }
}

it('no function is created late for tasks that complete, retry or die, one after the other', async () => {
  forbidLateFunctions()
  const { enqueue, startPool, broker } = await setup({
    concurrency: 1,
    handle: ({ input, attempt }) => {
      if (input.n === 1 && attempt === 1) throw new TaskError('again', 'try again')
      if (input.n === 2) throw new TaskError('never', 'never works', { retryable: false })
      return input
    },
  })
  const ids = await Promise.all([0, 1, 2, 3].map((n) => enqueue(long, { input: { n } })))
  await startPool()
  const statuses = () => Promise.all(ids.map(async (id) => (await broker.find(id))?.status))
  await eventually(async () => (await statuses()).join() === 'completed,completed,dead,completed')
})

it('no function is created late for a task that is delayed or has a priority', async () => {
  forbidLateFunctions()
  const { enqueue, broker } = await setup({ concurrency: 1, handle: ({ input }) => input })
  const ids = [
    await enqueue(long, { delayMs: 3_600_000 }),
    await enqueue(long, { delayMs: 3_600_000 }),
    await enqueue(long, { priority: 2 }),
  ]
  const statuses = await Promise.all(ids.map(async (id) => (await broker.find(id))?.status))
  expect(statuses).toEqual(['scheduled', 'scheduled', 'waiting'])
})

describe('withLazyFunctions', () => {
  const helper = (name: string, body: string): string => `local function ${name}(a, b)\n  ${body}\nend\n`
  const content = [
    'local rcall = redis.call\n',
    helper('first', 'return a * 10 + b'),
    helper('second', 'return first(a, b)'),
    helper('trimEvents', 'return second(a, b) + 1'),
    'local third = function ()\n  return 3\nend\n',
    'local n = trimEvents(tonumber(ARGV[1]), 2)\nif n < 0 then return third( ) end\nreturn n + third()\n',
  ].join('')

  it('returns a script with the same result', async () => {
    const server = await privateRedis()
    await server.start()
    const redis = new Redis(server.url)
    onTestFinished(() => redis.disconnect())
    const lazy = withLazyFunctions({ name: 'moveToFinished', content })
    expect(seldomIn(lazy)).toEqual(['first', 'second', 'third'])
    expect(await redis.eval(lazy, 0, '4')).toBe(await redis.eval(content, 0, '4'))
    expect(await redis.eval(lazy, 0, '4')).toBe(46)
  })

  it('does not rearrange a script whose functions have other statements between them', () => {
    const script = { name: 'moveToFinished', content: content.replace('local third', 'local x = 1\nlocal third') }
    expect(withLazyFunctions(script)).not.toContain('call_seldom')
  })

  it('does not rearrange a script with few seldom called functions', () => {
    expect(
      withLazyFunctions({ name: 'pause', content: `${helper('first', 'return a')}return first(1, 2)` }),
    ).not.toContain('call_seldom')
  })
})

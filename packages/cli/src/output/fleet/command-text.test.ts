// Tests how the outcome of a fleet command is formatted as text.
import type { CommandView } from '@bullpen/contract'
import { expect, test } from 'vitest'
import { commandView } from '../../fleet.fixture.ts'
import { commandLines } from './command-text.ts'

const layout = { now: 0, paint: (_style: string, text: string) => text }

test.each<[CommandView['spec'], string]>([
  [{ action: 'limit', queue: 'cpu', maxTasks: 1 }, 'length of cpu limited to 1 task'],
  [{ action: 'limit', queue: 'cpu', maxTasks: 500 }, 'length of cpu limited to 500 tasks'],
  [
    { action: 'limit', queue: 'cpu', concurrencyPerKey: 3, ratePerKey: { max: 100, per: '1m', burst: 5 } },
    'concurrency per key of cpu limited to 3; rate per key of cpu limited to 100/1m with bursts of 5',
  ],
  [
    { action: 'limit', queue: 'cpu', concurrencyKey: 'acme', concurrency: 0 },
    'concurrency of concurrency key acme in cpu limited to 0',
  ],
  [{ action: 'resize', queue: 'cpu', concurrency: 1 }, 'resized cpu to 1 slot'],
  [{ action: 'resize', queue: 'cpu', concurrency: 2 }, 'resized cpu to 2 slots'],
  [{ action: 'log_level', level: 'debug', for: '10m' }, 'log level of all workers set to debug for 10m'],
  [{ action: 'log_level', level: 'configured', queue: 'cpu' }, 'log level of cpu set to configured'],
  [{ action: 'breaker', queue: 'mail', service: 'smtp', to: 'open' }, 'breaker smtp of mail set to stay open'],
  [{ action: 'breaker', queue: 'mail', service: 'smtp', to: 'auto' }, 'breaker smtp of mail set to auto'],
])('the outcome of %j is one short sentence, with the right plurals', (spec, text) => {
  expect(commandLines(commandView(spec), layout)).toEqual([`${text}  command c1`])
})

test.each<[CommandView['spec'], string]>([
  [
    { action: 'limit', queue: 'cpu', maxTasks: 'none' },
    "limit on the length of cpu reset to the limit of the queue's definition, if any",
  ],
  [
    { action: 'limit', queue: 'cpu', maxBytes: 'none', maxAge: 'none' },
    "limit on the size of cpu reset to the limit of the queue's definition, if any; limit on the age of cpu reset to the limit of the queue's definition, if any",
  ],
  [
    { action: 'limit', apiKeyName: 'shop', enqueueRate: 'none' },
    "limit on the enqueue rate of API key shop reset to the limit of the queue's definition or of the API's settings, if any",
  ],
  [
    { action: 'limit', queue: 'cpu', apiKeyName: 'shop', maxUnfinishedTasks: 'none' },
    "limit on the number of unfinished tasks of API key shop in cpu reset to the limit of the queue's definition, if any",
  ],
  [
    { action: 'limit', queue: 'cpu', concurrencyKey: 'acme', rate: 'none' },
    "limit on the rate of concurrency key acme in cpu reset to the limit of the queue's definition, if any",
  ],
  [
    { action: 'limit', queue: 'cpu', rate: 'none', concurrency: 'none' },
    'concurrency limit removed from cpu; rate limit removed from cpu',
  ],
])('the outcome of %j says which limit applies again', (spec, text) => {
  expect(commandLines(commandView(spec), layout)).toEqual([`${text}  command c1`])
})

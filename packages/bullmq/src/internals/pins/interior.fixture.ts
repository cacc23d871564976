// Reads from a copy of the BullMQ package what Bullpen relies on beyond the documented API: the texts of the scripts, what BullMQ
// sends to them, and the texts of the methods that Bullpen replaces or whose effects it uses.
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type BackendModule, sentArguments } from './sent-arguments.fixture.ts'

/** Each table has an entry per name. */
export interface Interior {
  readonly version: string
  readonly scripts: Readonly<Record<string, { readonly keys: number; readonly text: string }>>
  /** The keys and arguments of each script, as text. */
  readonly arguments: Readonly<Record<string, readonly string[]>>
  /** Without comments. An absent method has the text ''. */
  readonly methods: Readonly<Record<string, string>>
}

/** The methods whose effects Bullpen uses although they are not documented, by class. */
const METHODS = {
  RedisQueueBackend: [
    'execCommand',
    'waitForJob',
    'addJobToTransaction',
    'addFlow',
    'forQueue',
    'moveToDelayed',
    'moveJobFromActiveToWait',
  ],
  Worker: [
    'createBackend',
    'run',
    'mainLoop',
    '_getNextJob',
    'moveToActive',
    'waitForJob',
    'waitForRateLimit',
    'retryIfFailed',
    'getBlockTimeout',
    'nextJobFromJobData',
    'processJob',
    'handleCompleted',
    'handleFailed',
    'getUnrecoverableErrorMessage',
    'pause',
    'resume',
    'close',
    'startStalledCheckTimer',
    'stalledChecker',
  ],
  QueueBase: ['createBackend'],
  AsyncFifoQueue: ['add', 'fetch', 'numTotal', 'numQueued', 'resolvePromise', 'wait'],
  Job: ['moveToCompleted', 'moveToFailed', 'moveToDelayed', 'moveToWait', 'shouldRetryJob', 'updateStacktrace'],
} as const satisfies Record<string, readonly string[]>

type Classes = Readonly<Record<keyof typeof METHODS, { readonly prototype: object }>>

/** The directory of the BullMQ package that Bullpen itself imports. */
export function installedBullmq(): string {
  return join(dirname(fileURLToPath(import.meta.resolve('bullmq'))), '../..')
}

/** `directory` is that of a BullMQ package whose dependencies are installed. */
export async function readInterior(directory: string): Promise<Interior> {
  const load = createRequire(join(directory, 'package.json'))
  const { version } = load('./package.json') as { version: string }
  const module = load('./dist/cjs/index.js') as BackendModule & Classes & { readonly createRedisBackend: unknown }
  const scripts = Object.values(load('./dist/cjs/scripts/index.js')) as {
    name: string
    keys: number
    content: string
  }[]
  const { unpack } = load('msgpackr') as { unpack: (packed: Uint8Array) => unknown }
  return {
    version,
    scripts: Object.fromEntries(
      scripts
        // The relay is another product that happens to be in the same package.
        .filter(({ name }) => !name.startsWith('relay'))
        .map(({ name, keys, content }) => [name, { keys, text: content }]),
    ),
    arguments: await sentArguments(module, unpack),
    methods: {
      ...Object.fromEntries(
        Object.entries(METHODS).flatMap(([name, methods]) =>
          methods.map((method) => [`${name}.${method}`, methodText(module[name as keyof Classes].prototype, method)]),
        ),
      ),
      createRedisBackend: withoutComments(String(module.createRedisBackend)),
    },
  }
}

function methodText(prototype: object, method: string): string {
  const { value } = Object.getOwnPropertyDescriptor(prototype, method) ?? {}
  return value === undefined ? '' : withoutComments(String(value))
}

/** Drops the lines that contain only a comment. */
function withoutComments(text: string): string {
  return text
    .split('\n')
    .filter((line) => !/^\s*(\/\/|\/\*|\*)/.test(line))
    .join('\n')
}

// Defines what each folder may import. The linter's import rules are generated from this table. Run `node
// scripts/import-walls.mjs` to write the rules to biome.json.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const NODE = ['node:*', 'node:*/**']
const CONTRACT = ['@bullpen/contract', '@bullpen/contract/internal']
const ENGINE = [...CONTRACT, '@bullpen/engine', '@bullpen/engine/internal', '@bullpen/engine/node']
const TESTS = ['**/*.test.ts', '**/*.fixture.ts']
const PORTS_ONLY = 'The engine must not use a clock or randomness of its own; use the Clock and Random ports.'

/**
 * A room is a folder with its own import rules. Relative imports inside a room are always allowed, and imports of another
 * package's sources never are. `except` lists globs that the rules do not apply to. `deniedGlobals` lists globals that the room
 * must not use.
 */
export const ROOMS = [
  { room: 'packages/contract/src/node', allow: NODE },
  {
    room: 'packages/contract',
    allow: ['croner', 'zod'],
    except: ['packages/contract/src/node/**'],
    noNode: true,
  },
  { room: 'packages/config', allow: [...CONTRACT, '@bullpen/contract/node', 'zod', ...NODE] },
  { room: 'packages/tasks', allow: ['@bullpen/contract', 'zod', ...NODE] },
  {
    room: 'packages/engine/src/node',
    allow: ['node:async_hooks', 'node:crypto', 'node:perf_hooks', 'node:v8'],
    keepFixtures: true,
  },
  {
    room: 'packages/engine',
    allow: [...CONTRACT, '@bullpen/contract/isolate', 'zod'],
    except: ['packages/engine/src/node/**'],
    noNode: true,
    deniedGlobals: ['setTimeout', 'setInterval', 'setImmediate', 'performance', 'process', 'queueMicrotask'],
  },
  { room: 'packages/bullmq', allow: [...ENGINE, '@bullpen/contract/node', 'bullmq', 'ioredis', 'zod', ...NODE] },
  // Code inside isolates loads as little as possible.
  {
    room: 'packages/sandbox/src/inside',
    allow: ['@bullpen/contract', '@bullpen/contract/isolate', '@bullpen/engine/isolate', 'zod', ...NODE],
  },
  {
    room: 'packages/sandbox',
    allow: [...ENGINE, '@bullpen/engine/isolate', 'zod', ...NODE],
    except: ['packages/sandbox/src/inside/**'],
  },
  { room: 'packages/telemetry/src/traces', allow: [...ENGINE, '@opentelemetry/api'] },
  // OpenTelemetry is an optional peer, so nothing else may load it.
  {
    room: 'packages/telemetry',
    allow: [...ENGINE, 'prom-client', 'pino', 'zod', ...NODE],
    except: ['packages/telemetry/src/traces/**'],
  },
  { room: 'packages/client', allow: CONTRACT, noNode: true },
  { room: 'packages/pipeline/src/tasks', allow: ENGINE, noNode: true },
  // A pipeline of functions does not load the engine.
  { room: 'packages/pipeline', allow: CONTRACT, except: ['packages/pipeline/src/tasks/**'], noNode: true },
  { room: 'packages/testkit', allow: [...ENGINE, ...NODE] },
  {
    room: 'packages/api',
    allow: [
      ...ENGINE,
      '@bullpen/bullmq',
      '@bullpen/bullmq/internal',
      '@bullpen/config',
      '@bullpen/telemetry',
      '@bullpen/telemetry/internal',
      'fastify',
      'fastify-plugin',
      'fastify-type-provider-zod',
      '@fastify/*',
      '@bull-board/**',
      'cookie',
      'zod',
      ...NODE,
    ],
  },
  {
    room: 'packages/worker',
    allow: [
      ...ENGINE,
      '@bullpen/bullmq',
      '@bullpen/bullmq/internal',
      '@bullpen/config',
      '@bullpen/sandbox/internal',
      '@bullpen/telemetry',
      '@bullpen/telemetry/internal',
      '@bullpen/telemetry/log',
      'zod',
      ...NODE,
    ],
  },
  // Only bullpen doctor --bullmq connects to Redis.
  {
    room: 'packages/cli/src/commands/doctor/bullmq',
    allow: [...CONTRACT, '@bullpen/client', '@bullpen/bullmq/internal', ...NODE],
  },
  {
    room: 'packages/cli',
    allow: [...CONTRACT, '@bullpen/client', 'string-width', ...NODE],
    except: ['packages/cli/src/commands/doctor/bullmq/**'],
  },
  { room: 'apps/api', allow: ['@bullpen/api', '@bullpen/config', '@bullpen/contract', '@bullpen/tasks', ...NODE] },
  {
    room: 'apps/worker',
    allow: [
      '@bullpen/config',
      '@bullpen/contract',
      '@bullpen/tasks',
      '@bullpen/tasks/*',
      '@bullpen/worker',
      'zod',
      ...NODE,
    ],
  },
  { room: 'apps/demo', allow: ['@bullpen/contract', '@bullpen/client', '@bullpen/tasks', '@bullpen/tasks/*', ...NODE] },
  {
    room: 'tools/testing',
    allow: [...ENGINE, '@bullpen/testkit', '@bullpen/testkit/internal', 'fast-check', 'vitest', 'zod', ...NODE],
  },
  { room: 'tools/grafana', allow: ['@bullpen/telemetry/dashboards', '@grafana/grafana-foundation-sdk/*', ...NODE] },
  {
    room: 'tools/plot',
    allow: ['@bullpen/client', '@bullpen/tasks', '@bullpen/telemetry/dashboards', 'vega', 'vega-lite', ...NODE],
  },
  {
    room: 'tools/bench',
    allow: [
      ...ENGINE,
      '@bullpen/api',
      '@bullpen/bullmq',
      '@bullpen/bullmq/internal',
      '@bullpen/client',
      '@bullpen/pipeline',
      '@bullpen/telemetry',
      '@bullpen/telemetry/internal',
      '@bullpen/telemetry/opentelemetry',
      '@bullpen/worker',
      '@opentelemetry/api',
      '@opentelemetry/context-async-hooks',
      '@opentelemetry/sdk-trace',
      'bullmq',
      'fastify',
      'fastify-type-provider-zod',
      'ioredis',
      'p-map',
      'zod',
      ...NODE,
    ],
  },
  {
    room: 'tools/drill',
    allow: [
      ...ENGINE,
      '@bullpen/api',
      '@bullpen/bullmq',
      '@bullpen/bullmq/internal',
      '@bullpen/client',
      '@bullpen/config',
      '@bullpen/pipeline',
      '@bullpen/plot',
      '@bullpen/tasks',
      '@bullpen/tasks/files',
      '@bullpen/tasks/files/fixtures',
      '@bullpen/telemetry/alerts',
      '@bullpen/testkit',
      '@bullpen/worker',
      'bullmq',
      'groupmq',
      'ioredis',
      'yaml',
      'zod',
      ...NODE,
    ],
  },
]

/** @param {typeof ROOMS[number]} room */
function override({ room, allow, except = [], noNode = false, keepFixtures = false, deniedGlobals }) {
  const sources = room.includes('/src') ? `${room}/**` : `${room}/src/**`
  const left = [...except, ...(keepFixtures ? ['**/*.test.ts'] : TESTS)]
  return {
    includes: [sources, ...left.map((glob) => `!${glob}`)],
    linter: {
      rules: {
        style: {
          noRestrictedImports: {
            level: 'error',
            options: {
              patterns: [
                {
                  group: ['**', '!./**', '!../**', ...allow.map((name) => `!${name}`), '**/src/**'],
                  message: `${room} may not import this; ARCHITECTURE.md lists what each folder may import.`,
                },
              ],
            },
          },
          ...(deniedGlobals && {
            noRestrictedGlobals: {
              level: 'error',
              options: { deniedGlobals: Object.fromEntries(deniedGlobals.map((name) => [name, PORTS_ONLY])) },
            },
          }),
        },
        ...(noNode && { correctness: { noNodejsModules: 'error' } }),
      },
    },
  }
}

/**
 * Tests may import more than the code that they test, but may import BullMQ and ioredis only where these are wrapped or measured.
 */
const TESTS_WITHOUT_REDIS_CLIENTS = {
  includes: ['{packages,apps,tools}/*/src/**/*.test.ts', '!packages/bullmq/**', '!tools/bench/**'],
  linter: {
    rules: {
      style: {
        noRestrictedImports: {
          level: 'error',
          options: {
            paths: { bullmq: 'Only packages/bullmq imports BullMQ.', ioredis: 'Only packages/bullmq imports ioredis.' },
          },
        },
      },
    },
  },
}

/** Returns the `overrides` of biome.json. */
export const overrides = () => [...ROOMS.map(override), TESTS_WITHOUT_REDIS_CLIENTS]

if (process.argv[1] === import.meta.filename) {
  const file = join(import.meta.dirname, '../biome.json')
  const config = JSON.parse(readFileSync(file, 'utf8'))
  writeFileSync(file, `${JSON.stringify({ ...config, overrides: overrides() }, null, 2)}\n`)
}

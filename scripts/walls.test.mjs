// The linter refuses what a folder may not import.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { overrides } from './import-walls.mjs'

const root = join(import.meta.dirname, '..')
const biome = join(root, 'node_modules/.bin/biome')

/** File and content. The linter runs once for all of them. */
const FORBIDDEN = [
  ['packages/contract/src/engine.ts', "import { x } from '@bullpen/engine/internal'"],
  ['packages/contract/src/fs.ts', "import { x } from 'node:fs'"],
  ['packages/tasks/src/engine.ts', "import { x } from '@bullpen/engine/internal'"],
  ['packages/engine/src/bullmq.ts', "import { x } from 'bullmq'"],
  ['packages/engine/src/fs.ts', "import { x } from 'node:fs'"],
  ['packages/engine/src/sibling.ts', "const { x } = await import('../../bullmq/src/broker.ts')"],
  ['packages/engine/src/timer.ts', 'const x = setTimeout'],
  ['packages/telemetry/src/telemetry.ts', "import { trace } from '@opentelemetry/api'"],
  ['packages/bullmq/src/telemetry.ts', "import { x } from '@bullpen/telemetry/internal'"],
  ['packages/sandbox/src/inside/engine.ts', "import { x } from '@bullpen/engine/internal'"],
  ['packages/sandbox/src/telemetry.ts', "import { x } from '@bullpen/telemetry/internal'"],
  ['packages/telemetry/src/bullmq.ts', "import { x } from '@bullpen/bullmq/internal'"],
  ['packages/client/src/engine.ts', "import { x } from '@bullpen/engine/internal'"],
  ['packages/pipeline/src/engine.ts', "import { x } from '@bullpen/engine/internal'"],
  ['packages/pipeline/src/fs.ts', "import { x } from 'node:fs'"],
  ['packages/testkit/src/vitest.ts', "import { x } from 'vitest'"],
  ['tools/testing/src/bullmq.ts', "import { x } from '@bullpen/bullmq/internal'"],
  ['packages/api/src/ioredis.ts', "import { x } from 'ioredis'"],
  ['packages/worker/src/bullmq.ts', "import { x } from 'bullmq'"],
  ['packages/cli/src/engine.ts', "import { x } from '@bullpen/engine/internal'"],
  ['packages/cli/src/tasks.ts', "import { x } from '@bullpen/tasks'"],
  ['packages/config/src/engine.ts', "import { x } from '@bullpen/engine/internal'"],
  ['packages/api/src/tasks.ts', "import { x } from '@bullpen/tasks'"],
  ['packages/worker/src/tasks.ts', "import { x } from '@bullpen/tasks'"],
  ['apps/api/src/fastify.ts', "import { x } from 'fastify'"],
  ['apps/worker/src/engine.ts', "import { x } from '@bullpen/engine/internal'"],
  ['apps/demo/src/engine.ts', "import { x } from '@bullpen/engine/internal'"],
  ['tools/drill/src/sandbox.ts', "import { x } from '@bullpen/sandbox/internal'"],
  ['packages/api/src/bullmq.test.ts', "import { x } from 'bullmq'"],
]

const ALLOWED = [
  ['tools/testing/src/allowed.ts', "import { x } from 'vitest'"],
  ['packages/bullmq/src/allowed.ts', "import { x } from '@bullpen/engine/internal'"],
  ['packages/engine/src/allowed.ts', "import { x } from './other.ts'"],
  ['apps/worker/src/handlers/allowed.ts', "import { x } from '../resources/index.ts'"],
  ['tools/drill/src/allowed.ts', "import { x } from 'ioredis'"],
]

const WALL = /noRestrictedImports|noNodejsModules|noRestrictedGlobals/

describe('the import rules', () => {
  const dir = mkdtempSync(join(tmpdir(), 'bullpen-walls-'))
  /** @type {Map<string, string[]>} rules broken, by file */
  const broken = new Map()

  beforeAll(() => {
    const config = JSON.parse(readFileSync(join(root, 'biome.json'), 'utf8'))
    writeFileSync(join(dir, 'biome.json'), JSON.stringify({ ...config, $schema: undefined, vcs: { enabled: false } }))
    for (const [file, line] of [...FORBIDDEN, ...ALLOWED]) {
      mkdirSync(dirname(join(dir, file)), { recursive: true })
      writeFileSync(join(dir, file), `${line}\nexport const y = x\n`)
    }
    const { stdout } = spawnSync(biome, ['lint', '--reporter=json', '--max-diagnostics=none', '.'], { cwd: dir })
    for (const { category, location } of JSON.parse(stdout.toString()).diagnostics) {
      const file = location.path?.file ?? location.path
      broken.set(file, [...(broken.get(file) ?? []), category])
    }
  })
  afterAll(() => rmSync(dir, { recursive: true }))

  it('biome.json contains the rules of the table in import-walls.mjs', () => {
    expect(JSON.parse(readFileSync(join(root, 'biome.json'), 'utf8')).overrides).toEqual(overrides())
  })

  it.each(FORBIDDEN)('%s may not contain: %s', (file) => {
    expect(broken.get(file)?.join(' ')).toMatch(WALL)
  })

  it.each(ALLOWED)('%s may contain: %s', (file) => {
    expect(broken.get(file)?.join(' ') ?? '').not.toMatch(WALL)
  })
})

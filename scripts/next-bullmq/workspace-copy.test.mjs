// The temporary copy of a workspace with another version of a package.
import { spawnSync } from 'node:child_process'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { copyWorkspace } from './workspace-copy.mjs'

function write(root, files) {
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    writeFileSync(join(root, file), typeof text === 'string' ? text : JSON.stringify(text))
  }
}

it('has the files of the workspace and the replaced package, also for packages that import it indirectly', () => {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'bullpen-copy-')))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  const root = join(dir, 'workspace')
  write(root, {
    '.gitignore': 'node_modules\nignored\n',
    ignored: '',
    'packages/a/src/new.ts': 'export {}',
    'node_modules/queue/package.json': { version: '1.0.0' },
    'node_modules/board/package.json': { peerDependencies: { queue: '*' } },
    'node_modules/@ui/board/package.json': { dependencies: { board: '*' } },
    'node_modules/other/package.json': { dependencies: { unrelated: '*' } },
  })
  mkdirSync(join(root, 'node_modules/@bullpen'))
  symlinkSync('../../packages/a', join(root, 'node_modules/@bullpen/a'))
  spawnSync('git', ['init', '--quiet'], { cwd: root })
  const replacement = join(dir, 'new/queue')
  write(replacement, { 'package.json': { version: '2.0.0' } })

  const copy = join(dir, 'copy')
  copyWorkspace({ root, copy, name: 'queue', replacement })

  expect(existsSync(join(copy, 'packages/a/src/new.ts'))).toBe(true)
  expect(existsSync(join(copy, 'ignored'))).toBe(false)
  const version = (where) => JSON.parse(readFileSync(join(where, 'node_modules/queue/package.json'), 'utf8')).version
  expect([version(root), version(copy)]).toEqual(['1.0.0', '2.0.0'])
  const isLink = (entry) => lstatSync(join(copy, 'node_modules', entry)).isSymbolicLink()
  expect(['board', '@ui/board', 'other'].map(isLink)).toEqual([false, false, true])
  expect(realpathSync(join(copy, 'node_modules/@bullpen/a'))).toBe(join(copy, 'packages/a'))
})

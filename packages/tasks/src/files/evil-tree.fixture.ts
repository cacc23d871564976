// A small tree with the names that break naive programs, for the tests of all who digest trees.
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const NAMES = [
  'plain.txt',
  'with space',
  ' leading and trailing ',
  'new\nline',
  'carriage\rreturn',
  'back\\slash',
  'all\\of\nthem\r',
  '\\n is not a newline',
  '-n',
  '*?[glob]',
  '"quoted" \'twice\'',
  'tab\there',
  '\u0001control',
  'caf\u00e9',
  'cafe\u0301',
  '日本語',
  // Sorted differently by bytes and by UTF-16 units.
  '\uffee',
  '\u{1f600}',
  'a',
  'a.b',
  'a0',
  // A directory 'dir' and files that sort around its slash.
  'dir-',
  'dir/inside',
  'dir/deep/er/still',
  'dir.txt',
  'dir0',
  '.hidden/.file',
  'nl\ndir/in\\side',
]

/** A fresh directory with {@link NAMES}, an empty file, links and an empty directory; `remove` deletes it. */
export async function evilTree(): Promise<{ directory: string; files: number; remove: () => Promise<void> }> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'bullpen-evil-')))
  for (const [i, name] of NAMES.entries()) {
    const path = join(directory, 'tree', name)
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, `content ${i} ${'x'.repeat(i * 1_000)}`)
  }
  await writeFile(join(directory, 'tree/empty'), '')
  await writeFile(join(directory, 'outside'), 'not in the tree')
  await mkdir(join(directory, 'tree/empty-dir'))
  await symlink('../outside', join(directory, 'tree/link-to-file'))
  await symlink('..', join(directory, 'tree/link-to-dir'))
  await symlink('nowhere', join(directory, 'tree/dangling'))
  return {
    directory: join(directory, 'tree'),
    files: NAMES.length + 1,
    remove: () => rm(directory, { recursive: true, force: true }),
  }
}

// Copies the workspace, so that it can be tested with another version of a package without touching its own node_modules.
//
// Files are copied, and installed packages are linked to the original's, which makes a copy cheap. Because Node looks for the
// imports of a linked package next to the original, every package that imports the replaced one, directly or not, is copied.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { UserError } from '../system/user-error.mjs'

/**
 * Copies the workspace at `root` to `copy`, which must not exist. In the copy, the package `name` is the one in the directory
 * `replacement`, which is moved there.
 * @param {{ root: string, copy: string, name: string, replacement: string }} options
 */
export function copyWorkspace({ root, copy, name, replacement }) {
  for (const file of filesOf(root)) {
    mkdirSync(dirname(join(copy, file)), { recursive: true })
    cpSync(join(root, file), join(copy, file), { verbatimSymlinks: true })
  }
  const entries = installedIn(join(root, 'node_modules'))
  const importers = importersOf(name, entries, join(root, 'node_modules'))
  for (const entry of entries) {
    if (entry === name) continue
    const [from, to] = [join(root, 'node_modules', entry), join(copy, 'node_modules', entry)]
    mkdirSync(dirname(to), { recursive: true })
    // The workspace's own packages are relative links, so that a copied link leads into the copy.
    if (importers.has(entry)) cpSync(from, to, { recursive: true, verbatimSymlinks: true })
    else symlinkSync(from, to)
  }
  renameSync(replacement, join(copy, 'node_modules', name))
}

/** Returns the files that git tracks or would add. */
function filesOf(root) {
  const { status, stdout, stderr } = spawnSync(
    'git',
    ['ls-files', '-z', '--cached', '--others', '--exclude-standard'],
    {
      cwd: root,
      encoding: 'utf8',
      maxBuffer: 100 * 1024 * 1024,
    },
  )
  if (status !== 0) throw new UserError(`git cannot list the files of ${root}: ${stderr?.trim()}`)
  // A tracked file may have been deleted.
  return [...new Set(stdout.split('\0'))].filter((file) => file !== '' && existsSync(join(root, file)))
}

/** Returns the names of the installed packages and of files such as `.bin`. */
function installedIn(modules) {
  return readdirSync(modules).flatMap((entry) =>
    entry.startsWith('@') ? readdirSync(join(modules, entry)).map((scoped) => `${entry}/${scoped}`) : [entry],
  )
}

/** Returns the workspace's own packages, and those that import the package `name` or one of its importers. */
function importersOf(name, entries, modules) {
  const importers = new Set(entries.filter((entry) => entry.startsWith('@bullpen/')))
  const imports = new Map(entries.map((entry) => [entry, importsOf(join(modules, entry))]))
  for (let size = -1; size !== importers.size; ) {
    size = importers.size
    for (const [entry, imported] of imports) {
      if (imported.some((each) => each === name || importers.has(each))) importers.add(entry)
    }
  }
  return importers
}

function importsOf(directory) {
  const manifest = join(directory, 'package.json')
  if (!existsSync(manifest)) return []
  const { dependencies = {}, peerDependencies = {} } = JSON.parse(readFileSync(manifest, 'utf8'))
  return [...Object.keys(dependencies), ...Object.keys(peerDependencies)]
}

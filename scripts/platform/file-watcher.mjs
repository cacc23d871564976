// Reports saved files below a directory, no matter how an editor saves them.
//
// Most editors, formatters and git save by writing a new file and renaming it over the old one. A watch on the file would follow
// the old inode and miss every later save, and Node's recursive watch on Linux does exactly that. Therefore, each directory has
// its own watch, which reports the directory's entries by name. Directories that appear later are watched too, and directories
// that were replaced are watched again.
import { readdirSync, statSync, watch } from 'node:fs'
import { join, relative } from 'node:path'

const IGNORED = /^(\..*|node_modules|dist)$/

/**
 * @param {string} root
 * @param {(file: string) => void} onSave called with the path relative to `root`, possibly several times for one save
 * @returns {{ close: () => void }}
 */
export function watchFiles(root, onSave) {
  /** @type {Map<string, { inode: number, watcher: import('node:fs').FSWatcher }>} */
  const watched = new Map()

  function unwatch(dir) {
    watched.get(dir)?.watcher.close()
    watched.delete(dir)
  }

  /** Watches one directory. If `isNew` is set, files that were written before the watch began count as saved. */
  function watchDirectory(dir, isNew) {
    const { ino: inode } = statSync(dir)
    if (watched.get(dir)?.inode === inode) return
    unwatch(dir)
    const watcher = watch(dir, (_, name) => name !== null && changed(dir, name))
    watcher.on('error', () => unwatch(dir)) // the directory was removed; its parent reports it when it comes back
    watched.set(dir, { inode, watcher })
    for (const entry of readdirSync(dir, { withFileTypes: true })) {
      if (IGNORED.test(entry.name)) continue
      if (entry.isDirectory()) watchDirectory(join(dir, entry.name), isNew)
      else if (isNew) onSave(relative(root, join(dir, entry.name)))
    }
  }

  function changed(dir, name) {
    if (IGNORED.test(name)) return
    const path = join(dir, name)
    try {
      if (statSync(path).isDirectory()) return watchDirectory(path, true)
    } catch {
      for (const gone of watched.keys()) if (gone === path || gone.startsWith(`${path}/`)) unwatch(gone)
    }
    onSave(relative(root, path)) // a removed file changes the program as well
  }

  watchDirectory(root, false)
  return {
    close() {
      for (const dir of [...watched.keys()]) unwatch(dir)
    },
  }
}

// Preloaded to check a program. It loads and links all of the program's modules, and then exits with 0 instead of running it.
import { registerHooks } from 'node:module'
import { pathToFileURL } from 'node:url'

const entry = pathToFileURL(process.argv[1]).href

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context)
    if (url !== entry) return loaded
    // Imports are hoisted above this statement, but the rest of the line must still be valid syntax.
    return { ...loaded, source: `process.exit(0); ${loaded.source}` }
  },
})

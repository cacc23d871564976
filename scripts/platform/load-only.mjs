// Preloaded to check a program: loads and links all of its modules, then exits with 0 instead of running it.
import { registerHooks } from 'node:module'
import { pathToFileURL } from 'node:url'

const entry = pathToFileURL(process.argv[1]).href

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context)
    if (url !== entry) return loaded
    // Imports are hoisted above this statement, and the rest of the line still has to parse.
    return { ...loaded, source: `process.exit(0); ${loaded.source}` }
  },
})

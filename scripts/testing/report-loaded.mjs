// Preloaded to see what a program loads. When the program exits, it writes the URLs of its modules and the names of the modules of
// Node to file descriptor 3, as JSON.
import { writeSync } from 'node:fs'
import { registerHooks } from 'node:module'

const urls = []
registerHooks({
  load(url, context, nextLoad) {
    urls.push(url)
    return nextLoad(url, context)
  },
})
process.on('exit', () => writeSync(3, JSON.stringify([...urls, ...process.moduleLoadList])))

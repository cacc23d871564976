import { setTimeout as sleep } from 'node:timers/promises'
import { defineHandler } from '@bullpen/contract'
import { report } from './catalogue.ts'

export default defineHandler(report, import.meta.url, async ({ input, progress, signal }) => {
  for (let page = 1; page <= input.pages; page++) {
    await progress(page / input.pages, `page ${page}, process ${process.pid}`)
    await sleep(500, undefined, { signal })
  }
  return { pages: input.pages }
})

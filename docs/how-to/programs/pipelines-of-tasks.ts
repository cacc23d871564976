import {
  defineHandler,
  definePipeline,
  defineReduceHandler,
  defineReducer,
  defineSource,
  defineSourceHandler,
  defineTask,
} from '@bullpen/contract'
import { runPipeline, streamPipeline } from '@bullpen/pipeline'
import { z } from 'zod'

const words = defineSource({ name: 'words.read', queue: 'io', input: z.object({ text: z.string() }), item: z.string() })
const measure = defineTask({
  name: 'words.measure',
  queue: 'cpu',
  input: z.string(),
  output: z.object({ word: z.string(), length: z.int() }),
  retry: { maxAttempts: 3, backoff: { initialDelay: '10ms' } },
})
const longest = defineReducer({
  name: 'words.longest',
  queue: 'cpu',
  input: z.object({ text: z.string() }),
  item: z.object({ word: z.string(), length: z.int() }),
  output: z.string(),
})

const handlers = {
  'words.read': defineSourceHandler(words, import.meta.url, ({ text }) => text.split(' ')),
  'words.measure': defineHandler(measure, import.meta.url, ({ input: word, attempt }) => {
    if (word === 'pipelines' && attempt === 1) throw new Error('the ruler is missing')
    return { word, length: word.length }
  }),
  'words.longest': defineReduceHandler(
    longest,
    import.meta.url,
    (all) => all.reduce((one, other) => (other.length > one.length ? other : one)).word,
  ),
}

const measured = definePipeline('words.measured').source(words).map(measure, { concurrency: 4 })
const input = { text: 'the same pipelines run here' }

console.log(await runPipeline(measured.reduce(longest), input, { handlers }))
for await (const { word, length } of streamPipeline(measured, input, { handlers })) console.log(word, length)

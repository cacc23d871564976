import {
  defineHandler,
  definePipeline,
  defineSource,
  defineSourceHandler,
  defineTask,
  TaskError,
} from '@bullpen/contract'
import { runPipeline } from '@bullpen/pipeline'
import { z } from 'zod'

const list = defineSource({
  name: 'files.list',
  queue: 'io',
  input: z.object({ files: z.array(z.string()) }),
  item: z.object({ file: z.string() }),
})
const upload = defineTask({
  name: 'files.upload',
  queue: 'io',
  input: z.object({ file: z.string() }),
  output: z.string(),
  retry: { maxAttempts: 3, backoff: { initialDelay: '10ms' } },
})

const handlers = {
  'files.list': defineSourceHandler(list, import.meta.url, ({ files }) => files.map((file) => ({ file }))),
  'files.upload': defineHandler(upload, import.meta.url, ({ input: { file }, attempt }) => {
    if (file === 'b.jpg' && attempt < 3) throw new Error('connection reset')
    if (file === 'd.txt') throw new TaskError('not_an_image', `${file} is not an image`, { retryable: false })
    return `uploaded ${file} with attempt ${attempt}`
  }),
}

const uploads = definePipeline('files.uploads', { onError: 'collect' }).source(list).map(upload, { concurrency: 2 })
const input = { files: ['a.jpg', 'b.jpg', 'c.jpg', 'd.txt'] }
const { output, errors } = await runPipeline(uploads, input, { handlers })
console.log(output)
for (const { stage, position, cause } of errors) console.log(stage, position, String(cause))

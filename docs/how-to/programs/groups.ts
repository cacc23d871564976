import { redis } from '@bullpen/bullmq'
import { createClient } from '@bullpen/client'
import { defineCatalogue, defineHandler, defineTask, followUp } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { z } from 'zod'

const resize = defineTask({
  name: 'image.resize',
  queue: 'images',
  input: z.object({ file: z.string() }),
  output: z.object({ bytes: z.int() }),
})
const publish = defineTask({ name: 'album.publish', queue: 'albums', input: z.object({ album: z.string() }) })
const catalogue = defineCatalogue(resize, publish)

const config = { redisUrl: process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379', namespace: 'how-to-groups' }
const client = createClient({ transport: redis(config.redisUrl, { catalogue, namespace: config.namespace }) })

const published = Promise.withResolvers<void>()
const handlers = {
  'image.resize': defineHandler(resize, import.meta.url, ({ input }) => ({ bytes: 100 * input.file.length })),
  'album.publish': defineHandler(publish, import.meta.url, async ({ input, group }) => {
    if (group === undefined) throw new Error('enqueue album.publish as a follow-up of a group')
    for await (const { member, output } of client.group(group.id).results()) console.log(`image ${member}`, output)
    console.log(`published ${input.album}`)
    published.resolve()
  }),
}

const worker = createWorker({ catalogue, handlers, config: { ...config, logLevel: 'silent', port: 0 } })
await worker.start()

const group = await client.createGroup({ onError: 'cancel', onSuccess: [followUp(publish, { album: 'Rome' })] })
await group.add(resize, [{ file: 'forum.png' }, { file: 'pantheon.png' }], { seal: true })
await published.promise

await worker.drain()
await client.close()

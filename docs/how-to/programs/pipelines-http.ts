import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { definePipeline, runPipeline, type StageContext } from '@bullpen/pipeline'

interface Price {
  readonly sku: string
  readonly cents: number
}

const shop = createServer((request, response) => response.end(`{"cents":${Number(request.url?.slice(1)) * 10}}`))
await new Promise<void>((resolve) => shop.listen(0, '127.0.0.1', resolve))
const url = `http://127.0.0.1:${(shop.address() as AddressInfo).port}`

async function* skus() {
  for (let sku = 1; sku <= 100; sku++) yield String(sku) // for example the lines of a file
}

async function fetchPrice(sku: string, { signal }: StageContext): Promise<Price> {
  const response = await fetch(`${url}/${sku}`, { signal })
  if (!response.ok) throw new Error(`${sku}: HTTP ${response.status}`)
  return { sku, ...((await response.json()) as { cents: number }) }
}

const total = definePipeline('price-total')
  .source(skus)
  .map(fetchPrice, { concurrency: 8 })
  .fold((sum, { cents }) => sum + cents, 0)

console.log(await runPipeline(total))
shop.close()
shop.closeAllConnections()

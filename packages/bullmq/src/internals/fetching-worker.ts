// BullMQ's worker, whose fetching tells when it fails, also when BullMQ began it by itself.
import { Worker } from 'bullmq'

export class FetchingWorker extends Worker {
  /** Hears why fetching has ended before its time. */
  onFetchingFailed: (error: unknown) => void = () => {}

  /** BullMQ calls this, too, when a paused worker goes on whose last task has ended meanwhile, and looks at no result. */
  override async run(): Promise<void> {
    try {
      await super.run()
    } catch (error) {
      this.onFetchingFailed(error)
    }
  }
}

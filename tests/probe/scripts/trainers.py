"""Loops that a training library runs. Usage: trainers.py KIND"""

from __future__ import annotations

import sys
import tempfile

import torch
from truth import Truth
from work import WIDTH, Net, loader, loss_of, sgd


def accelerate_loop(truth: Truth) -> None:
    from accelerate import Accelerator

    accelerator = Accelerator(gradient_accumulation_steps=2, cpu=True)
    net = Net()
    model, optimizer, batches, test = accelerator.prepare(net, sgd(net), loader(), loader(100, 50))
    held = 0
    for _ in range(2):
        model.train()
        for x, y in batches:
            with accelerator.accumulate(model):
                accelerator.backward(loss_of(model, x, y))
                optimizer.step()
                optimizer.zero_grad()
            held += len(x)
            if accelerator.sync_gradients:
                truth.step(held)
                held = 0
        model.eval()
        with torch.no_grad():
            for x, y in test:
                loss_of(model, x, y)


def accelerate_stopped(truth: Truth) -> None:
    """Its loader has read one batch more than the loop has seen."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    net = Net()
    model, optimizer, batches = accelerator.prepare(net, sgd(net), loader())
    for index, (x, y) in enumerate(batches):
        if index == 15:
            break
        optimizer.zero_grad()
        accelerator.backward(loss_of(model, x * 2, y))
        optimizer.step()
        truth.step(len(x))


def lightning_loop(truth: Truth, **options: object) -> None:
    import lightning

    class Lit(lightning.LightningModule):
        held = 0

        def __init__(self) -> None:
            super().__init__()
            self.net = Net()

        def training_step(self, batch, _index):  # type: ignore[no-untyped-def]
            Lit.held += len(batch[0])
            return loss_of(self.net, *batch)

        def validation_step(self, batch, _index) -> None:  # type: ignore[no-untyped-def]
            self.log("loss", loss_of(self.net, *batch))

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return sgd(self)

        def optimizer_step(self, *args, **kwargs) -> None:  # type: ignore[no-untyped-def]
            super().optimizer_step(*args, **kwargs)
            truth.step(Lit.held)
            Lit.held = 0

    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            max_epochs=2,
            accelerator="cpu",
            devices=1,
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=folder,
            **options,
        )
        trainer.fit(Lit(), loader(shuffle=True), loader(100, 50))


def lightning_accumulation(truth: Truth) -> None:
    lightning_loop(truth, accumulate_grad_batches=3)


def transformers_loop(truth: Truth, **options: object) -> None:
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Regression(Net):
        def forward(self, x, labels):  # type: ignore[no-untyped-def]
            out = super().forward(x)
            if self.training:
                Regression.held += len(x)
            return {"loss": torch.nn.functional.mse_loss(out, labels), "logits": out}

    Regression.held = 0

    class Count(TrainerCallback):
        def on_optimizer_step(self, *args, **kwargs) -> None:  # type: ignore[no-untyped-def]
            truth.step(Regression.held)
            Regression.held = 0

    def rows(count):  # type: ignore[no-untyped-def]
        return [{"x": torch.randn(WIDTH), "labels": torch.randn(1)} for _ in range(count)]

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=10,
            num_train_epochs=2,
            eval_strategy="steps",
            eval_steps=5,
            save_steps=7,
            use_cpu=True,
            report_to=[],
            disable_tqdm=True,
            logging_strategy="no",
            **options,
        )
        trainer = Trainer(
            Regression(),
            arguments,
            train_dataset=rows(205),
            eval_dataset=rows(64),
            callbacks=[Count()],
        )
        trainer.train()


def transformers_accumulation(truth: Truth) -> None:
    transformers_loop(truth, gradient_accumulation_steps=4)


def transformers_stopped(truth: Truth) -> None:
    transformers_loop(truth, max_steps=15)


if __name__ == "__main__":
    truth = Truth()
    globals()[sys.argv[1]](truth)
    truth.tell()
